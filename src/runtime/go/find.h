/* Whether a process runs Go, and where its runtime's data is. */
#ifndef FGPROF_RUNTIME_GO_FIND_H
#define FGPROF_RUNTIME_GO_FIND_H

#include "elf/query.h"
#include "mapping/space.h"
#include "proc/stack_areas.h"
#include "runtime/go/goroutine.h"

struct go {
    struct module *module;          /* the file that has the runtime; NULL: none */
    const struct go_layout *layout; /* of its version; NULL: not known */
    uint64_t bias;                  /* what is added to the module's own addresses */
    struct go_runtime runtime;      /* what is in the file */
    struct go_place place;          /* of the runtime's data */
};

/* Searches the modules of the space. `tid` is a live thread of the process. Returns 0, even if it
 * finds none; -EAGAIN if its files can't be read at present; or -ENOMEM. */
int go_find(struct queries *queries, struct space *space, pid_t tid,
            const struct stack_areas *areas, struct go *ret_go);

/* Finds the list of goroutines, if it was not found yet and the version is known; go->place.layout
 * is set then. A list is accepted only if everything that the runtime keeps about it agrees. There
 * is none before the runtime has started. Returns 0, even if it is not found; -EAGAIN if the file
 * can't be read at present; or -ENOMEM. */
int go_find_list(struct queries *queries, struct go *go, pid_t tid,
                 const struct stack_areas *areas);

/* Whether the thread with this stack, leaf first, is one of the runtime's that has no goroutine to
 * run. */
bool go_is_idle(const struct go *go, const uint64_t *addresses, size_t depth);

/* The function that has the code at an address. */
struct go_function {
    uint64_t start;         /* 0: none is known */
    bool is_own;            /* a goroutine that begins with it is the runtime's own, which Go's
                               profiles omit */
    enum go_wait_kind lock; /* what kind of lock it waits for at a call that it makes there;
                               GO_WAIT_SEMAPHORE: not known to wait for one */
    char *text;             /* with its place in the source: "main.f (/src/f.go:12)"; the caller
                               frees it; NULL: not known */
};

/* Returns 0; -EAGAIN if the file can't be read at present; or -ENOMEM. */
int go_function_at(struct queries *queries, const struct go *go, uint64_t address,
                   struct go_function *ret_function);

#endif
