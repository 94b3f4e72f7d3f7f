/* Whether a process runs Go, and where its runtime has what. */
#ifndef FGPROF_RUNTIME_GO_FIND_H
#define FGPROF_RUNTIME_GO_FIND_H

#include "elf/go/pclntab.h"
#include "mapping/space.h"
#include "proc/stack_areas.h"
#include "runtime/go/goroutine.h"

#define GO_IDLE_FUNCTIONS_MAX 8

struct go {
    struct module *module;          /* the file that has the runtime; NULL: none */
    unsigned minor;                 /* of Go 1.minor; 0: not known */
    const struct go_layout *layout; /* of that version; NULL: not known */
    uint64_t bias;                  /* what is added to the module's own addresses */
    struct pclntab table;
    struct go_place place; /* of the runtime's data */
    /* Functions, by the module's own addresses: the one that adds to the list of goroutines, and
     * those that a thread is in while it has no goroutine. */
    struct function_range adding;
    struct function_range idle[GO_IDLE_FUNCTIONS_MAX];
    size_t idle_count;
};

/* Looks through the modules of the space. `tid` is a live thread of the process. */
void go_find(struct space *space, pid_t tid, const struct stack_areas *areas, struct go *ret_go);

/* Finds the list of goroutines, if it was not found yet and the version is known: go->place.layout
 * is set then. A list is believed only if all that the runtime keeps of it agrees. There is none
 * before the runtime has begun. */
void go_find_list(struct go *go, pid_t tid, const struct stack_areas *areas);

/* Whether the thread that has this stack, leaf first, is one of the runtime's that has no goroutine
 * to run. */
bool go_is_idle(const struct go *go, const uint64_t *addresses, size_t depth);

/* The function that has the code at this address, and its place in the source: "main.f
 * (/src/f.go:12)"; NULL: not known, or memory is short. The caller frees it. */
char *go_describe(const struct go *go, uint64_t address);

/* What kind of lock a function waits for, by the return address of a call that it made;
 * GO_WAIT_SEMAPHORE: it is not known to wait for one. */
enum go_wait_kind go_lock_of_caller(const struct go *go, uint64_t address);

/* Whether the goroutine that begins with this function is the runtime's own, which Go's profiles
 * leave out. */
bool go_is_own(const struct go *go, uint64_t start);

#endif
