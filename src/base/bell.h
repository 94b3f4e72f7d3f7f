/* Wakes a thread that waits, or will: it counts rings, and a futex waits for more of them
 * (futex(2)). That costs less than waiting for files. Starts zeroed. */
#ifndef FGPROF_BASE_BELL_H
#define FGPROF_BASE_BELL_H

#include <stdatomic.h>
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

/* Waits until there were more rings than `heard`, or until `until_ns` on CLOCK_MONOTONIC. May also
 * return early. */
void bell_wait(struct bell *bell, uint32_t heard, uint64_t until_ns);

#endif
