/* When the sampling thread yields to threads that were woken on its CPU.
 *
 * A round takes some tenths of a millisecond. A thread whose timer fires on the sampler's CPU
 * meanwhile would have to wait for its end; yielding saves it that wait. This serves the target's
 * latency, not the truth of the profile: with fewer threads than are looked at between two readings
 * of the clock (rounds.c) there is no yield at all, and with more threads the gain in shares was
 * within noise (scripts/bench corrections --only turns-asleep). */
#ifndef FGPROF_SAMPLER_YIELD_H
#define FGPROF_SAMPLER_YIELD_H

#include "base/throttle.h"

/* Whether other threads have waited long enough for the sampler's CPU. `given`: when it was last
 * yielded, by CLOCK_MONOTONIC. */
bool yield_is_due(const struct throttle *given, uint64_t now_ns);

/* The sampler yielded from `begin_ns` to `end_ns`. If a thread that computes took the CPU, that
 * lasts for a whole time slice and makes the round late, so there is no other yield for long. */
void yield_note(struct throttle *given, uint64_t begin_ns, uint64_t end_ns);

#endif
