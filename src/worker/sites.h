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
    uint64_t asked_ns;      /* the round in which a thread was to be stopped there; 0: none is */
    unsigned stops_left;    /* how often that may be tried */
};

struct site_keys {
    uint64_t shared, own;
};

/* A thread that was counted with a cut stack, while another was to be stopped at its site. */
struct site_waiter {
    uint32_t thread;
    pid_t tid;
    uint64_t round_ns; /* that it was seen in */
};

/* Zeroed at first. */
struct sites {
    struct site *items;
    size_t count, capacity;
    struct index index;
    struct site_waiter *waiters; /* by round */
    size_t waiter_count, waiter_capacity;
    size_t waiters_gone; /* the first ones, whose wait is over */
};

/* For a thread asleep with this cut stack: of the site that it shares with others, and of its own.
 */
struct site_keys sites_keys(pid_t tid, const struct snapshot *snapshot, const struct stack *stack);

/* The site, or NULL if it has not been seen. */
struct site *sites_find(const struct sites *sites, uint64_t key);

/* Adds one that is not there, as not known. Returns 0 or -ENOMEM. */
int sites_add(struct sites *sites, uint64_t key);

/* Adds a thread that waits. Returns 0 or -ENOMEM. */
int sites_wait(struct sites *sites, const struct site_waiter *waiter);

/* Takes one whose wait is over: it was seen before the round at `round_ns`. Returns false if there
 * is none. */
bool sites_next_waiter(struct sites *sites, uint64_t round_ns, struct site_waiter *ret_waiter);

void sites_free(struct sites *sites);

#endif
