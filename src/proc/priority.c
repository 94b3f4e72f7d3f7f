#include "proc/priority.h"

#include <sched.h>

/* SCHED_RESET_ON_FORK stays set: clearing it takes a capability that RLIMIT_RTPRIO does not give
 * (sched(7)). It has no effect on a thread of ordinary priority. */
void priority_run_first(bool *runs_first)
{
    struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_RR)};
    if (!*runs_first)
        *runs_first = (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_OTHER &&
                      sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) == 0;
}

void priority_run_as_others(bool *runs_first)
{
    struct sched_param none = {0};
    if (*runs_first)
        sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none);
    *runs_first = false;
}
