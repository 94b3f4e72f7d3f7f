/* Where threads sleep whose stacks need the frame pointer, which a thread read asleep does not
 * show.
 *
 * A site is a thread, its pc and sp, and the return addresses up to where the register is needed:
 * the same frames, so the same frame pointer. It is learnt by stopping the thread once, and used
 * only where the stack then reaches its thread's first frame. */
#ifndef FGPROF_RECORDER_SITES_H
#define FGPROF_RECORDER_SITES_H

#include "base/index.h"
#include "capture/snapshot.h"
#include "unwind/stack.h"

struct site {
    uint64_t key;
    bool is_known; /* false: a stop was tried and did not tell */
    uint64_t frame_pointer;
};

struct sites {
    struct site *items;
    size_t count, capacity;
    struct index index;
};

/* The key of a thread asleep with this cut stack. */
uint64_t sites_key(pid_t tid, const struct snapshot *snapshot, const struct stack *stack);

/* The site, or NULL where it has not been seen. */
struct site *sites_find(const struct sites *sites, uint64_t key);

/* Adds one that is not there, as not known. Returns 0 or -ENOMEM. */
int sites_add(struct sites *sites, uint64_t key);

void sites_free(struct sites *sites);

#endif
