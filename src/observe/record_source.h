/* Observes threads that are off their CPU, by the kernel's record of switches
 * (observe/bpf/switch_record.h): asleep, or waiting for a CPU.
 *
 * A sample should show where a thread was at the tick, not where it is found some time later. The
 * record has that however late we look, with all registers. A thread that is still where it was at
 * the tick is read now, and the record proves that it did not move meanwhile. For a thread that has
 * moved since, the record has the top of its stack at that time. */
#ifndef FGPROF_OBSERVE_RECORD_SOURCE_H
#define FGPROF_OBSERVE_RECORD_SOURCE_H

#include "observe/bpf/switch_record.h"
#include "observe/subject.h"
#include "observe/watch.h"

struct record_source {
    struct switch_record *record;
    struct watches *watches;
    bool hides_returns; /* the kernel does not report every return to a CPU to the record */
};

/* Observes a thread for the tick of the subject, into `observation`, whose snapshot has room for
 * the wanted stacks. Returns OUTCOME_REFUSED if the record does not know where the thread was, for
 * example because the thread has not moved since the record began, or because no switch reported
 * its return to a CPU; OUTCOME_RUNNING if it was on a CPU at the tick; OUTCOME_PENDING if it has
 * moved since (if it was off its CPU at the tick, the record has a message); else OUTCOME_OBSERVED,
 * OUTCOME_UNMOVED or OUTCOME_WOKEN. */
enum outcome record_source_observe(struct record_source *source, const struct subject *subject,
                                   struct observation *observation);

/* Sets how much of the thread's stacks the record keeps from now on. */
void record_source_want_stack(struct switch_record *record, uint32_t slot, uint32_t generation,
                              const struct subject *subject);

/* The part of the stack that the thread has left, as far as the record has it. If frame pointers
 * lead to none, as in C code without them, the place that was last requested. */
struct stack_place record_source_other_stack(const struct past_departure *past,
                                             const struct subject *subject);

/* Fills in the message's Python frames, if it has any. */
void record_source_read_frames(const struct past_departure *past,
                               const struct python_layout *layout, struct snapshot *snapshot);

/* Fills in the thread's state, call, registers and stacks as they were at a completed departure.
 * The snapshot must have room for the wanted stacks. Parts that the record lacks are read now. The
 * thread has moved since, but only for as long as we are late, and its callers' frames are further
 * up the stack. */
void record_source_read_past(const struct past_departure *past, const struct subject *subject,
                             struct observation *observation);

#endif
