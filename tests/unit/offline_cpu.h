/* Simulates CPUs that go offline, for tests that wrap cpus_read_online and
 * events_update_cpus_sometimes. */
#ifndef FGPROF_TESTS_OFFLINE_CPU_H
#define FGPROF_TESTS_OFFLINE_CPU_H

#include "observe/events.h"

int __real_cpus_read_online(struct cpus *cpus);
int __wrap_cpus_read_online(struct cpus *cpus);
int __wrap_events_update_cpus_sometimes(struct events *events);

static int offline_cpu = -1;

int __wrap_cpus_read_online(struct cpus *cpus)
{
    int err = __real_cpus_read_online(cpus);
    size_t kept = 0;
    for (size_t i = 0; i < cpus->count; i++) {
        if (cpus->items[i] != offline_cpu)
            cpus->items[kept++] = cpus->items[i];
    }
    cpus->count = kept;
    return err;
}

int __wrap_events_update_cpus_sometimes(struct events *events)
{
    return events_update_cpus(events);
}

#endif
