/* Counting: what is owed to a thread's samples, for the stack that was found. */
#ifndef FGPROF_RECORDER_TARGET_COUNT_H
#define FGPROF_RECORDER_TARGET_COUNT_H

#include "recorder/target.h"

/* The thread's time begins at `from_ns`, with the kernel's figures for it now. */
void target_count_begin(struct target *target, struct thread *thread, uint64_t from_ns);

/* Books the thread's time up to `now_ns`, as ledger_book does, in its timeline too. */
void target_book_until(struct recording *recording, struct thread *thread, uint64_t now_ns,
                       const struct activity *activity, enum account account);

/* Counts target->stack, of target->capture, for the thread. Returns 0 or -ENOMEM. */
int target_count(struct target *target, struct thread *thread);

/* Of a thread that was found running: the kernel's figures for its time so far are kept for its
 * next sample. */
void target_book_running(struct target *target, struct thread *thread);

/* Counts the last sample of a thread again that has slept since. */
void target_count_unmoved(struct target *target, struct thread *thread);

/* The thread may not be stopped, or can't be looked at: counts what has passed as not captured,
 * where it is more than a period or two. Returns 0 or -ENOMEM. */
int target_count_not_captured(struct target *target, struct thread *thread);

/* The thread is gone, or the recording at its end. Settles its ledger: its time until `until_ns` is
 * counted for where it was seen last, or as not captured where it was not seen. Not where that
 * is less than a tick or two, unless `is_certain`: that it was there until then. Returns 0 or
 * -ENOMEM. */
int target_count_end(struct target *target, struct thread *thread, uint64_t until_ns,
                     bool is_certain);

#endif
