/* Booking: up to when a thread's time is known, and by what.
 *
 * A thread is seen at moments that have nothing to do with it: when threads are listed, and at the
 * look of a round. Its time is booked up to these. That it was there somewhat later, since it was
 * stopped then, is known of the ones that ran and of no others: to count that too would make their
 * lives too long. */
#ifndef FGPROF_SAMPLER_TARGET_BOOK_H
#define FGPROF_SAMPLER_TARGET_BOOK_H

#include "sampler/target.h"

/* The thread's time begins at `from_ns`, with the kernel's figures for it now. */
void target_book_begin(struct target *target, struct thread *thread, uint64_t from_ns);

/* What is counted of a thread ends with a look at it, some time after it was listed: where it is
 * new, that time is taken from its beginning, so that it is counted once. */
void target_book_first_look(const struct target *target, struct thread *thread);

/* Books the thread's time up to `now_ns`, as ledger_book does, in its timeline too. */
void target_book_until(struct recording *recording, struct thread *thread, uint64_t now_ns,
                       const struct activity *activity, enum account account);

/* Books it up to when it was seen, by what the kernel said at target->capture. */
void target_book(struct target *target, struct thread *thread, enum account account);

/* When a thread that has been stopped was seen: at the look that found it running, or at the
 * beginning of a later round. */
uint64_t target_book_seen_ns(const struct target *target, const struct thread *thread);

/* Whether more than a late tick is not booked. */
bool target_book_has_gap(const struct target *target, const struct thread *thread,
                         uint64_t until_ns);

/* Up to when a thread that has gone lived: until threads were listed last, it among them, also
 * where it was gone before it could be looked at; or until the round before, which found their
 * number unchanged. That is as much too early as those that come are counted from too early. */
uint64_t target_book_gone_ns(const struct target *target);

#endif
