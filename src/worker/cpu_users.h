/* The threads that had the CPUs for which other threads waited: such a CPU is a resource with an
 * owner. If that thread is not sampled, the resource's name contains its name. */
#ifndef FGPROF_WORKER_CPU_USERS_H
#define FGPROF_WORKER_CPU_USERS_H

#include "worker/means.h"
#include "worker/owners.h"

/* For an observed thread that waits for a CPU, replaces *sample by the sample with the thread that
 * had the CPU, if that is known. Returns 0 or -ENOMEM. */
int cpu_user_place(const struct means *means, const struct observation *observation,
                   uint32_t *sample);

#endif
