/* A look finds a thread awake that slept at the tick: it was woken in the 100 us between them, and
 * waits for a CPU, maybe for ours. If such looks said nothing of sleep, short waits would be shown
 * with less time than they take: they are the ones that end so soon after a tick. */
#ifndef FGPROF_OBSERVE_WOKEN_H
#define FGPROF_OBSERVE_WOKEN_H

#include "observe/observation.h"

/* Whether a thread that a look found awake, and that was stopped at the end of a system call at
 * `stopped_ns`, had waited for a CPU until then since a moment after `tick_ns` (0: there was no
 * tick). It may have been woken there, or have lost its CPU in the middle of the call: what tells
 * them apart is whether threads sleep in that place. */
bool woken_after(uint64_t tick_ns, const struct reading *look, const struct reading *stopped,
                 uint64_t stopped_ns);

#endif
