/* Which threads had the CPUs that others waited for, as what those waited for: a resource with an
 * owner. A thread that is not sampled is named by the resource. */
#ifndef FGPROF_WORKER_CPU_USERS_H
#define FGPROF_WORKER_CPU_USERS_H

#include "worker/owners.h"

/* Replaces *sample, of an observed thread that waits for a CPU, by the one with the thread that had
 * the CPU, if that is known. Returns 0 or -ENOMEM. */
int cpu_user_place(struct results *results, const struct owners *owners,
                   const struct observation *observation, uint64_t period_ns, uint32_t *sample);

#endif
