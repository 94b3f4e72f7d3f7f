/* Feeds count/elapsed.h from the worker's messages: ticks with their awake threads, accounts, and
 * waits. */
#ifndef FGPROF_WORKER_ELAPSED_TICKS_H
#define FGPROF_WORKER_ELAPSED_TICKS_H

#include "sampler/channel.h"
#include "worker/threads.h"

/* The process of this row is sampled from `begin_ns` on; 0: since the recording began. Called for
 * rows in ascending order, or again for a reused row. Returns 0 or -ENOMEM. */
int elapsed_ticks_begin(struct results *results, uint32_t process, pid_t pid, uint64_t begin_ns,
                        uint64_t period_ns);

/* Takes in a MESSAGE_TICK. Returns 0 or -ENOMEM. */
int elapsed_ticks_take(struct results *results, struct counted_threads *threads,
                       const struct message *message);

/* Whether a thread that is seen asleep has slept on since elapsed_ticks_note_wait. */
bool elapsed_ticks_is_same_wait(const struct thread_account *account,
                                const struct observation *observation);

/* The thread was seen asleep, and counted in `sample`. If it is still asleep since the last call,
 * this is the same wait. Returns 0 or -ENOMEM. */
int elapsed_ticks_note_wait(struct results *results, const struct observation *observation,
                            struct counted_thread *thread, uint32_t sample);

/* Counts the thread's wait, which may have ended, in this sample. */
void elapsed_ticks_place_wait(struct results *results, struct counted_thread *thread,
                              uint32_t sample);

/* After `known_tick` the sleeping thread waits for a lock that another thread holds. `end_sample`,
 * of the same process, is the end of the chain of owners. Returns 0 or -ENOMEM. */
int elapsed_ticks_note_chain(struct results *results, struct counted_thread *thread,
                             uint32_t end_sample, uint64_t known_tick);

/* After `known_tick` it waits for no lock with a known owner. */
void elapsed_ticks_end_chain(struct results *results, struct counted_thread *thread,
                             uint64_t known_tick);

/* If the thread was waiting, the wait ended at `last_tick`. Returns 0 or -ENOMEM. */
int elapsed_ticks_end_wait(struct results *results, struct counted_thread *thread,
                           uint64_t last_tick);

#endif
