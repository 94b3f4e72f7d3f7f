/* Wakes a thread that waits or is about to wait: it counts rings, and a futex waits for the count
 * to grow (futex(2)). That is cheaper than waiting on file descriptors. Starts zeroed. */
#ifndef FGPROF_BASE_BELL_H
#define FGPROF_BASE_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bell {
    _Atomic uint32_t rings;
};

/* Safe in any thread or signal handler. */
void bell_ring(struct bell *bell);

/* The rings so far. To be called before looking at what a ring announces. */
static inline uint32_t bell_heard(struct bell *bell)
{
    return atomic_load(&bell->rings);
}

/* Waits until the count of rings exceeds `heard`, or until `until_ns` on CLOCK_MONOTONIC. May also
 * return early. */
void bell_wait(struct bell *bell, uint32_t heard, uint64_t until_ns);

/* A bell for a thread that takes messages. Waking that thread costs more than handling a message,
 * and if all CPUs are busy, it preempts another thread. So the bell is rung only once there are
 * many messages, an old one, or an urgent one. Everything but the bell starts zeroed. */
struct lazy_bell {
    struct bell *bell;
    size_t unrung;    /* messages since it was last rung */
    bool is_hurried;  /* one of them can't wait */
    uint64_t rung_ns; /* when it was */
};

void lazy_bell_ring(struct lazy_bell *lazy);
/* Returns whether it rang. */
bool lazy_bell_ring_if_due(struct lazy_bell *lazy, uint64_t now_ns);

#endif
