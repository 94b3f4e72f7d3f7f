/* Where threads sleep whose stacks need the frame pointer, which a thread read asleep does not
 * show.
 *
 * A site is a pc, and the return addresses up to where the register is needed: the same frames, so
 * the same distance from the stack pointer to the frame pointer, as a rule. One thread is stopped
 * once to learn it, and it is tried for all others there. If that is not right for a thread, it has
 * a site of its own, with its id and sp. */
#ifndef FGPROF_WORKER_SITES_H
#define FGPROF_WORKER_SITES_H

#include "base/index.h"
#include "observe/snapshot.h"
#include "unwind/stack.h"

struct site {
    uint64_t key;
    bool is_known;
    bool has_base_pointer;
    uint64_t distance;      /* of the frame pointer from the stack pointer */
    uint64_t base_distance; /* of the base pointer, which only a stop tells */
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

/* For a thread asleep with this cut stack: of the site that it shares with others, and of its own.
 */
struct site_keys sites_keys(pid_t tid, const struct snapshot *snapshot, const struct stack *stack);

/* The site, or NULL if it has not been seen. */
struct site *sites_find(const struct sites *sites, uint64_t key);

/* Adds one that is not there, as not known. Returns 0 or -ENOMEM. */
int sites_add(struct sites *sites, uint64_t key);

void sites_free(struct sites *sites);

#endif
