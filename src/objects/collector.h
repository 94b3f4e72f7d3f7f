/* The collector: a separate thread that collects objects (objects/source.h) from their sources and
 * reports them to the worker.
 *
 * The sampling thread only sends it notices about processes, and never waits for it. If the order
 * matters, a message says how many messages of the other thread come before it
 * (sampler/channel.h). */
#ifndef FGPROF_OBJECTS_COLLECTOR_H
#define FGPROF_OBJECTS_COLLECTOR_H

#include "objects/news_queue.h"
#include "objects/notice.h"
#include "proc/process.h"

struct collector;

/* Starts observing page faults if they are wanted. Returns 0 or -ENOMEM. */
int collector_new(const struct collector_options *options, struct news_queue *queue,
                  struct collector **ret_collector);
/* Call it after its thread has ended. Accepts NULL. */
void collector_free(struct collector *collector);

/* Starts observing births, which may take some milliseconds. May be called again. Returns 0 or
 * -ENOMEM. */
int collector_prepare(struct collector *collector);

/* What an agent should report: not threads, if the kernel reports them. */
struct object_options collector_agent_options(const struct collector *collector);

/* Tries whether objects of this kind can be observed in any of the processes. To be called before
 * collector_start. Returns 0, -ENOMEM, or the reason why not: see object_counts_refusal. */
int collector_try(struct collector *collector, enum object_kind kind);

/* Creates a followed process, to use in its notices. Returns 0 or -ENOMEM. */
int collector_add(struct collector *collector, const struct process *process, uint32_t number,
                  uint64_t after, struct object_process **ret_process);

/* Handles the notice immediately if the collector has not started, else later in its thread.
 * Returns 0 or -ENOMEM. */
int collector_note(struct collector *collector, struct notice notice);

/* Whether everything from before the last copy request has been sent. If so, sets *ret_sent to the
 * number of messages sent by then. */
bool collector_has_told(const struct collector *collector, uint64_t *ret_sent);

/* From now on the collector runs in a thread of its own, and only that thread calls functions other
 * than collector_note. `has_command`: the recording began with the process. */
void collector_start(struct collector *collector, bool has_command);

/* Polls all sources, without waiting. Returns when to do so again; 0: the collector has ended. */
uint64_t collector_step(struct collector *collector);

/* Repeats collector_step until the end. Returns 0, or the error that stopped it from reporting
 * objects. */
int collector_run(struct collector *collector);

#endif
