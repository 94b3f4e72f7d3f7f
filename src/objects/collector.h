/* The collector: a separate thread that learns of objects (objects/source.h) and reports them to
 * the worker.
 *
 * The sampling thread only reports processes to it, by notices, and waits for nothing. Messages
 * whose order matters are ordered: each says how many messages of the other thread come before it
 * (sampler/channel.h). */
#ifndef FGPROF_OBJECTS_COLLECTOR_H
#define FGPROF_OBJECTS_COLLECTOR_H

#include "objects/news_queue.h"
#include "objects/notice.h"
#include "proc/process.h"

struct collector;

/* Begins to see page faults if they are wanted. Returns 0 or -ENOMEM. */
int collector_new(const struct collector_options *options, struct news_queue *queue,
                  struct collector **ret_collector);
/* Its thread has ended. Accepts NULL. */
void collector_free(struct collector *collector);

/* Begins to see births, which may take some milliseconds. May be called again. Returns 0 or
 * -ENOMEM. */
int collector_prepare(struct collector *collector);

/* What an agent is to report: not threads, if the kernel reports them. */
struct object_options collector_agent_options(const struct collector *collector);

/* To be called before it starts: whether objects of this kind can be seen in any of the processes.
 * Returns 0, -ENOMEM, or the reason: see object_counts_refusal. */
int collector_try(struct collector *collector, enum object_kind kind);

/* A process that is followed, for its notices. Returns 0 or -ENOMEM. */
int collector_add(struct collector *collector, const struct process *process, uint32_t number,
                  uint64_t after, struct object_process **ret_process);

/* Handles the notice at once if the collector has not started, and later in its thread if it has.
 * Returns 0 or -ENOMEM. */
int collector_note(struct collector *collector, struct notice notice);

/* Whether everything from before the last copy was ordered has been sent. If so, sets *ret_sent to
 * the number of messages sent by then. */
bool collector_has_told(const struct collector *collector, uint64_t *ret_sent);

/* From now on it runs in a thread of its own, which is the next to call anything but the notices.
 * `has_command`: the recording began with the process. */
void collector_start(struct collector *collector, bool has_command);

/* Asks all sources, without waiting for anything. Returns when to do it again; 0: it has ended. */
uint64_t collector_step(struct collector *collector);

/* Repeats that until the end. Returns 0, or the error that stopped it from reporting objects. */
int collector_run(struct collector *collector);

#endif
