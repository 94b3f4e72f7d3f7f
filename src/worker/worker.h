/* The worker takes observations off the channel, unwinds and counts them, and asks for what was
 * lacking. It runs at ordinary priority beside the sampling thread, which never waits for it. */
#ifndef FGPROF_WORKER_WORKER_H
#define FGPROF_WORKER_WORKER_H

#include "sampler/channel.h"
#include "wait/facts.h"
#include "worker/results.h"

/* Called in the worker's thread for MESSAGE_COPY: `results` may be read during the call. */
typedef void worker_copy_fn(void *context, const struct results *results,
                            const struct message *message);

/* Called in the worker's thread at its first error: nothing more is counted. May be NULL. */
typedef void worker_failed_fn(void *context);

struct worker_options {
    uint64_t period_ns;
    size_t max_depth;         /* frames kept of a stack */
    bool tells_threads_apart; /* each thread has samples of its own; notes those that never moved */
    struct wait_list *waits;  /* for a dump: receives what threads wait for; else NULL */
    worker_copy_fn *copy;
    worker_failed_fn *failed;
    void *copy_context; /* for copy and failed */
};

struct worker;

/* `channel`, `results` and what `options` points at must outlive it. Returns 0 or -ENOMEM. */
int worker_new(const struct worker_options *options, struct channel *channel,
               struct results *results, struct worker **ret_worker);
void worker_free(struct worker *worker);

/* Works until MESSAGE_END, or until the channel is closed. Returns 0 or the first negative errno
 * that it met; after an error it still takes and drops messages. */
int worker_run(struct worker *worker);

/* How much was counted so far; safe from any thread. */
uint64_t worker_samples(const struct worker *worker);
uint64_t worker_stacks(const struct worker *worker);
uint64_t worker_deadlocks(const struct worker *worker);

#endif
