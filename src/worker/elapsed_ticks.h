/* Elapsed time (count/elapsed.h) as the worker hears of it: ticks with the threads that they found
 * awake, threads' accounts, and waits. */
#ifndef FGPROF_WORKER_ELAPSED_TICKS_H
#define FGPROF_WORKER_ELAPSED_TICKS_H

#include "sampler/channel.h"
#include "worker/threads.h"

/* The next process is sampled from `begin_ns` on; 0: since the recording began. Returns 0 or
 * -ENOMEM. */
int elapsed_ticks_begin(struct results *results, pid_t pid, uint64_t begin_ns, uint64_t period_ns);

/* Takes in a MESSAGE_TICK. Returns 0 or -ENOMEM. */
int elapsed_ticks_take(struct results *results, struct counted_threads *threads,
                       const struct message *message);

/* The thread was seen asleep, in `sample`. If it has slept since it was last seen so, that is the
 * same wait. Returns 0 or -ENOMEM. */
int elapsed_ticks_note_wait(struct results *results, const struct observation *observation,
                            struct counted_thread *thread, uint32_t sample);

/* The thread's wait, which may have ended meanwhile, is counted in this sample. */
void elapsed_ticks_place_wait(struct results *results, struct counted_thread *thread,
                              uint32_t sample);

/* After `known_tick` the thread, which is asleep, waits for a lock that a thread holds, and
 * `end_sample`, of the same process, is where the chain ends. Returns 0 or -ENOMEM. */
int elapsed_ticks_note_chain(struct results *results, struct counted_thread *thread,
                             uint32_t end_sample, uint64_t known_tick);

/* After `known_tick` it waits for no lock that is held by a thread that is known. */
void elapsed_ticks_end_chain(struct results *results, struct counted_thread *thread,
                             uint64_t known_tick);

/* The observation finds the thread as no tick after `last_tick` did: if it was waiting, that has
 * ended there. Returns 0 or -ENOMEM. */
int elapsed_ticks_end_wait(struct results *results, struct counted_thread *thread,
                           uint64_t last_tick);

#endif
