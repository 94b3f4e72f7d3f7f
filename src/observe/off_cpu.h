/* Observes threads that are off their CPU, by the kernel's record of switches
 * (observe/bpf/switch_record.h): asleep, or waiting for a CPU.
 *
 * The question is where a thread was at a tick, and not where it is found some time later. The
 * record has the answer however late we come, with all registers. A thread that is still where it
 * was at the tick is read now, and the record proves that it did not move meanwhile. One that has
 * moved since comes from `collect`, with the top of its stack as it was. */
#ifndef FGPROF_OBSERVE_OFF_CPU_H
#define FGPROF_OBSERVE_OFF_CPU_H

#include "observe/bpf/switch_record.h"
#include "observe/snapshots.h"
#include "observe/source.h"
#include "observe/watch.h"

struct off_cpu_options {
    struct switch_record *record; /* all must outlive the source */
    struct watches *watches;
    struct snapshots *snapshots;
};

/* The source's `observe` returns OUTCOME_REFUSED for a thread of which the record does not know
 * where it was, such as one that has not moved since it began; else OUTCOME_OBSERVED,
 * OUTCOME_UNMOVED, OUTCOME_WOKEN or OUTCOME_PENDING, or OUTCOME_RUNNING for one that was on a CPU
 * at the tick.
 *
 * What is collected has the ids of its thread and process, `tick`, the last one that it was off its
 * CPU at, and registers and stack; no thread number, process number or program yet, and `now` says
 * nothing. Returns 0 or -ENOMEM. */
int off_cpu_source_new(const struct off_cpu_options *options, struct source **ret_source);

/* Snapshots that are collected have room for that much of a stack from now on. */
void off_cpu_make_room(struct source *source, size_t stack_limit);

/* How many observations were lost since there was no snapshot for them. */
uint64_t off_cpu_lost(const struct source *source);

/* Completes a stack that was collected, of which the record has the top: the rest is read now. The
 * thread has moved since, but only for as long as we are late, and what it returns to is further up
 * the stack. `areas`: its process's. */
void off_cpu_complete_stack(struct observation *observation, const struct stack_areas *areas);

#endif
