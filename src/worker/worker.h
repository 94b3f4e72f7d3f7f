/* The worker takes observations from the channel, unwinds and counts them, and requests what was
 * missing. It runs at ordinary priority beside the sampling thread, which never waits for it. */
#ifndef FGPROF_WORKER_WORKER_H
#define FGPROF_WORKER_WORKER_H

#include "sampler/channel.h"
#include "wait/wait_list.h"
#include "worker/kept_memory.h"
#include "worker/runtime_tasks.h"
#include "worker/spans.h"

#include <stdatomic.h>

/* Called in the worker's thread for MESSAGE_COPY: `results` may be read during the call. */
typedef void worker_copy_fn(void *context, const struct results *results,
                            const struct message *message);

/* What the kept checkpoints need. */
struct worker_checkpoints {
    bool are_last;  /* earlier ones were given up, and profiles may begin at these, or the start */
    uint32_t epoch; /* what was last counted then (count/stack_table.h), or before, and */
    uint64_t begin_ns; /* CLOCK_MONOTONIC: timelines before this, may be forgotten */
    size_t bytes;
};

/* Called in the worker's thread for MESSAGE_MOMENT, to take a checkpoint. Returns whether samples
 * may be dropped. */
typedef bool worker_checkpoint_fn(void *context, const struct results *results,
                                  const struct sampling_state *state,
                                  struct worker_checkpoints *ret_checkpoints);

/* Called in the worker's thread if memory is full: gives up earlier checkpoints. Returns whether
 * there were any. */
typedef bool worker_crowded_fn(void *context, struct worker_checkpoints *ret_checkpoints);

/* Called in the worker's thread: the epoch of the earliest checkpoint at which a profile may begin,
 * or `epoch` if that is earlier. */
typedef uint32_t worker_held_fn(void *context, uint32_t epoch);

/* Called in the worker's thread to order a MESSAGE_MOMENT soon. */
typedef void worker_order_fn(void *context);

/* Called in the worker's thread at its first error: nothing more is counted. May be NULL. */
typedef void worker_failed_fn(void *context);

struct worker_options {
    uint64_t period_ns;
    size_t max_depth;         /* frames kept of a stack */
    bool keeps_native_frames; /* the Python interpreter's */
    bool has_kernel_stacks;   /* those of wakers are kept, too */
    bool has_goroutines; /* those of Go programs are counted, and threads without one left out */
    bool has_tasks;      /* those of asyncio are counted */
    bool tells_threads_apart; /* each thread has samples of its own; notes those that never moved */
    bool tells_goroutines;    /* and of each goroutine that it runs */
    struct span_options spans;
    struct lookups *lookups;     /* see struct rule_tables; must outlive the worker */
    struct wait_list *waits;     /* for a dump: receives what threads wait for; else NULL */
    struct runtime_tasks *tasks; /* the same, of its goroutines and tasks */
    /* The memory limit for everything that is kept; SIZE_MAX: no limit. With checkpoints, mappings,
     * modules and code of running programs count as at most half of it. Without: above it, what has
     * ended is merged. */
    size_t bytes_max;
    bool keeps_stacks; /* since the start, also with checkpoints, in half of the memory */
    worker_checkpoint_fn *checkpoint; /* NULL: no checkpoints are noted; then this is not needed: */
    worker_crowded_fn *crowded;
    worker_order_fn *order_checkpoint; /* without checkpoints: orders MESSAGE_MOMENT to make room;
                                          NULL: none is made */
    worker_held_fn *held_since;        /* needed with order_checkpoint */
    worker_copy_fn *copy;
    worker_failed_fn *failed;
    void *context; /* of these functions */
};

struct worker;

/* `channel`, `results` and what `options` points at must outlive it. Returns 0 or -ENOMEM. */
int worker_new(const struct worker_options *options, struct channel *channel,
               struct results *results, struct worker **ret_worker);
void worker_free(struct worker *worker);

/* Works until MESSAGE_END, or until the channel is closed. Returns 0 or the first negative errno
 * that occurred; after an error it still takes messages and discards them. */
int worker_run(struct worker *worker);

/* How much was counted so far, and how much memory was kept when a checkpoint or a copy was last
 * taken. Any thread may read it. */
struct worker_progress {
    _Atomic uint64_t samples, stacks, deadlocks, samples_not_kept, processes_joined;
    _Atomic uint64_t kept[KEPT_KIND_COUNT]; /* bytes */
};
const struct worker_progress *worker_progress(const struct worker *worker);

#endif
