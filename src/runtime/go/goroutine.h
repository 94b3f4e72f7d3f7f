/* A goroutine as it is in memory: what struct g says of it. */
#ifndef FGPROF_RUNTIME_GO_GOROUTINE_H
#define FGPROF_RUNTIME_GO_GOROUTINE_H

#include "proc/stack_areas.h"
#include "runtime/go/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Where a program's runtime is. */
struct go_place {
    const struct go_layout *layout; /* NULL: it has none, or is not known */
    /* The array of pointers to all struct g: where its address is (allgptr), and its length
     * (allglen). The length is read first, so that it is not too large (atomicAllG in proc.go). */
    uint64_t first, count;
};

/* How much of struct g is read. */
#define GOROUTINE_BYTES_MAX 512u
static inline size_t goroutine_bytes(const struct go_layout *layout)
{
    return layout->g_labels + sizeof(uint64_t);
}

struct goroutine {
    uint64_t stack_low, stack_high;
    uint64_t m; /* of its thread; 0: it has none */
    uint64_t sp, pc, frame_pointer;
    uint64_t id, parent; /* parent 0: not known */
    uint64_t creator, start, labels, waiting;
    int64_t waits_since; /* CLOCK_MONOTONIC, about: the collector sets it; 0: it has not yet */
    uint32_t status;     /* without _Gscan */
    uint8_t reason;
    uint8_t sequence;
    bool is_locked; /* to a thread */
};

/* `bytes` are goroutine_bytes() of a struct g. */
void goroutine_parse(const struct go_layout *layout, const unsigned char *bytes,
                     struct goroutine *ret_goroutine);

/* Reads the goroutine at the address, of the process that thread `tid` belongs to. Returns whether
 * it could be read. */
bool goroutine_read(const struct go_layout *layout, uint64_t address, pid_t tid,
                    const struct stack_areas *areas, struct goroutine *ret_goroutine);

enum goroutine_where {
    GOROUTINE_NOWHERE,   /* it does not exist */
    GOROUTINE_ON_THREAD, /* it runs, is in a system call or in C, or its thread works for it */
    GOROUTINE_PARKED,    /* its stack stays as it is until it is made to run */
    GOROUTINE_MOVING,    /* its stack is being moved */
    GOROUTINE_SENSELESS, /* what was read makes no sense */
};
enum goroutine_where goroutine_where(const struct goroutine *goroutine);

/* Whether a goroutine that is on a thread is in a system call or in C. */
bool goroutine_is_in_call(const struct goroutine *goroutine);

/* Whether a parked goroutine only waits for a thread. */
bool goroutine_is_runnable(const struct goroutine *goroutine);

/* What shows whether a parked goroutine has run since. */
struct goroutine_rest {
    uint64_t id, sp, pc, stack_high; /* id 0: it is not known to be parked */
    uint8_t status, reason, sequence;
};
struct goroutine_rest goroutine_rest(const struct goroutine *goroutine);
bool goroutine_has_stayed(const struct goroutine_rest *before, const struct goroutine_rest *after);

#endif
