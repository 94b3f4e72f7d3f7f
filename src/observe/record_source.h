/* Observes threads that are off their CPU, by the kernel's record of switches
 * (observe/bpf/switch_record.h): asleep, or waiting for a CPU.
 *
 * The question is where a thread was at a tick, and not where it is found some time later. The
 * record has the answer however late we come, with all registers. A thread that is still where it
 * was at the tick is read now, and the record proves that it did not move meanwhile. Of one that
 * has moved since, the record has the top of its stack as it was. */
#ifndef FGPROF_OBSERVE_RECORD_SOURCE_H
#define FGPROF_OBSERVE_RECORD_SOURCE_H

#include "observe/bpf/switch_record.h"
#include "observe/subject.h"
#include "observe/watch.h"

struct record_source;

/* Both arguments must outlive the source. Returns 0 or -ENOMEM. */
int record_source_new(struct switch_record *record, struct watches *watches,
                      struct record_source **ret_source);
/* Accepts NULL. */
void record_source_free(struct record_source *source);

/* Observes a thread for the tick of the subject, into `observation`, whose snapshot has room for
 * the stacks wanted. Returns OUTCOME_REFUSED for a thread of which the record does not know where
 * it was, such as one that has not moved since it began, or whose return to a CPU no switch told
 * of; else OUTCOME_OBSERVED, OUTCOME_UNMOVED or OUTCOME_WOKEN; OUTCOME_RUNNING for one that was on
 * a CPU at the tick; or OUTCOME_PENDING for one that has moved since: if it was off its CPU at the
 * tick, the record has a message. */
enum outcome record_source_observe(struct record_source *source, const struct subject *subject,
                                   struct observation *observation);

/* Tells the record how much of the thread's stacks to keep from now on. */
#define RECORD_STACK_BYTES_MIN 4096u
void record_source_want_stack(struct switch_record *record, uint32_t slot, uint32_t generation,
                              const struct subject *subject);

/* The part of the stack that the thread has left: what the record has of it. If frame pointers lead
 * to none, as in C code without them, the place that was asked for last. */
struct stack_place record_source_other_stack(const struct past_departure *past,
                                             const struct subject *subject);

/* Fills in what the message has of Python frames, if it has any. */
void record_source_read_frames(const struct past_departure *past,
                               const struct python_layout *layout, struct snapshot *snapshot);

/* Fills in the thread's state, its call, registers and stacks as they were at a departure that is
 * over. The snapshot must have room for the stacks wanted. What the record does not have of them is
 * read now. The thread has moved since, but only for as long as we are late, and what it returns to
 * is further up the stack. */
void record_source_read_past(const struct past_departure *past, const struct subject *subject,
                             struct observation *observation);

#endif
