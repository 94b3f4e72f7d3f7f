/* What a recording gathers: the tables that samples go into, and how sampling went. */
#ifndef FGPROF_SAMPLER_RECORDING_H
#define FGPROF_SAMPLER_RECORDING_H

#include "base/histogram.h"
#include "base/strings.h"
#include "count/stack_table.h"
#include "count/timeline.h"
#include "mapping/spaces.h"
#include "observe/reaper.h"
#include "unwind/unwind.h"
#include "wait/facts.h"

#define NO_SPACE UINT32_MAX /* of a stack that was not captured */

struct recording {
    struct modules modules;
    struct spaces spaces;
    struct unwinder *unwinder;
    struct stack_table stacks;
    struct timeline timeline; /* kept only where it is wanted */
    struct strings strings;   /* thread names and wait channels */
    uint64_t start_ns;        /* CLOCK_MONOTONIC: ticks are start_ns + n * period_ns */
    uint64_t end_ns;          /* 0 until it ends */
    uint64_t start_time_ns;   /* the same moment, since 1970 */
    uint64_t period_ns;
    uint64_t awake_ns; /* CLOCK_MONOTONIC: the sampling thread has not waited for a tick since */
    bool looks_at_all; /* at this tick at those too that sleep for long: a copy is to be made */
    struct reaper *reaper;
    uint64_t stop_heard_ns; /* when a thread was last heard to stop, less what that takes */
    bool runs_first;        /* the sampling thread holds threads stopped: see proc/priority.h */
    bool lacks_files;       /* some are: they are opened anew for each look */
    int keep_fds_below;     /* threads' files with higher descriptors are closed after each read */
    uint64_t ticks_taken;
    uint64_t threads_seen, threads_chosen; /* of those that were seen */
    pid_t *idle_tids;                      /* at the end: of threads that never moved */
    size_t idle_tid_count, idle_tid_capacity;
    uint64_t idle_ns;           /* what was counted for them, once they are dropped */
    uint64_t processes_refused; /* descendants that could not be sampled */
    uint64_t samples;
    uint64_t carry_ns; /* of threads that have gone: see ledger_settle */
    uint64_t samples_cut;
    uint64_t samples_not_captured;
    uint64_t samples_thinned; /* looks at running threads that were not stopped, to spare them */
    uint64_t samples_assumed; /* between the last two looks at a thread that had slept, and moved */
    uint64_t jit_files_refused, jit_bytes_unread;
    struct wait_list *waits; /* of a dump, which is one round: what threads wait for; else NULL */
    struct histogram pauses; /* of threads that were running */
    uint64_t running_ns;     /* time of samples whose thread was running */
    int error;
};

/* Returns 0 or -ENOMEM. */
int recording_init(struct recording *recording);
void recording_free(struct recording *recording);

/* The moment up to which time is counted: now, and the end once that is reached. */
uint64_t recording_now_ns(const struct recording *recording);

/* How many ticks had come due at `now_ns`. */
uint64_t recording_tick_at(const struct recording *recording, uint64_t now_ns);

#endif
