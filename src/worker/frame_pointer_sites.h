/* Places where threads sleep with stacks that need the frame pointer, which a thread read asleep
 * does not show.
 *
 * A site is a pc and the return addresses up to where the register is needed. The frames are the
 * same, so usually the frame pointer is at the same distance from the stack pointer. One thread is
 * stopped once to learn it, and it is tried for all others there. If it is not right for a thread,
 * that thread gets a site of its own, with its id and sp. */
#ifndef FGPROF_WORKER_FRAME_POINTER_SITES_H
#define FGPROF_WORKER_FRAME_POINTER_SITES_H

#include "base/index.h"
#include "observe/snapshot.h"
#include "unwind/stack.h"

struct site {
    uint64_t key;
    bool is_known;
    bool has_base_pointer;
    uint64_t distance;      /* of the frame pointer from the stack pointer */
    uint64_t base_distance; /* of the base pointer, which only a stop shows */
    uint64_t asked_ns;      /* CLOCK_MONOTONIC: when a thread was to be stopped there last */
    unsigned stops_left;    /* how often that may be tried */
};

struct site_keys {
    uint64_t shared, own;
};

/* Zeroed at first. */
struct sites {
    struct site *items;
    size_t count, capacity;
    struct index index;
};

/* The keys of a sleeping thread with this cut stack: for the site that it shares with others, and
 * for its own. */
struct site_keys sites_keys(pid_t tid, const struct snapshot *snapshot, const struct stack *stack);

/* The site with this key, or NULL if it has not been seen. */
struct site *sites_find(const struct sites *sites, uint64_t key);

/* Adds a site that is not known yet; if there are very many, all others go. Returns 0 or -ENOMEM.
 */
int sites_add(struct sites *sites, uint64_t key);

void sites_free(struct sites *sites);

#endif
