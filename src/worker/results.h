/* The results of a recording: the tables in which observations are counted. The worker owns them
 * while it runs. Profiles are made from them afterwards, or from a copy. */
#ifndef FGPROF_WORKER_RESULTS_H
#define FGPROF_WORKER_RESULTS_H

#include "base/strings.h"
#include "count/deadlocks.h"
#include "count/elapsed.h"
#include "count/label_sets.h"
#include "count/objects.h"
#include "count/runtime_frames.h"
#include "count/stack_table.h"
#include "count/timeline.h"
#include "count/waits.h"
#include "mapping/spaces.h"
#include "objects/source.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct result_counts {
    /* Sums since the start, RESULT_SUMS of them: */
    uint64_t samples;                           /* weighted by ticks */
    uint64_t samples_cut, samples_not_captured; /* of the samples */
    uint64_t samples_not_kept;                  /* of those cut: see stack_table.is_full */
    uint64_t running_ns; /* time that threads were running, by their accounts */
    uint64_t jit_files_refused, jit_bytes_unread;
    /* Labels of threads, by observations: */
    uint64_t labels_read;
    uint64_t labels_later;      /* of a running thread; another one may have been there before */
    uint64_t labels_changed;    /* while they were read: not used */
    uint64_t labels_unreadable; /* the thread pointer is not known, or the memory can't be read */
    uint64_t labels_bad;        /* with a value that is not UTF-8, which was left out */
    uint64_t labels_limited;    /* with a key, a value or a set beyond the limits */
    uint64_t python_stacks;     /* observations with Python frames, */
    uint64_t python_stacks_missing; /* and those that show the interpreter's instead */
    uint64_t goroutine_ns;          /* of parked goroutines */
    uint64_t goroutines_moved;      /* while they were read: not counted */
    uint64_t task_ns;               /* of tasks of asyncio that were suspended */
    uint64_t tasks_moved;           /* while they were read: not counted */
    uint64_t tasks_cut;             /* readings of a list that was too long, or broken off */
    uint64_t spans_kept, spans_dropped, spans_dropped_ns; /* see worker/spans.h */

    uint64_t owed_ns;               /* time that is booked, and given to no sample yet */
    uint64_t idle_ns;               /* time of threads that never moved, once it is dropped */
    uint64_t python_version;        /* see struct fgprof_summary */
    uint64_t go_version;            /* the same */
    uint64_t tasks_version;         /* the same */
    uint64_t goroutines_left_out;   /* at last: there were too many */
    uint64_t goroutines_unreadable; /* at last */
    uint64_t processes_joined;      /* that had ended, and are shown by name only */
    bool ended_are_joined;          /* samples of these, or of threads that had ended */
};
#define RESULT_SUMS (offsetof(struct result_counts, owed_ns) / sizeof(uint64_t))

struct results {
    struct modules modules;
    struct spaces spaces;
    struct stack_table stacks;
    struct waits waits;
    struct objects objects;
    struct object_counts object_counts[OBJECT_KIND_COUNT]; /* as of the collector's last count */
    struct deadlocks deadlocks;
    struct label_sets label_sets;
    bool has_trace_ids;       /* they are labels, too */
    struct timeline timeline; /* kept only if wanted */
    struct elapsed *elapsed;  /* of each process */
    size_t elapsed_count, elapsed_capacity;
    struct parallelism parallelism; /* of all processes, each by itself */
    struct runtime_frames runtime_frames;
    size_t goroutine_bytes; /* of what is known of the goroutines of programs that run */
    struct strings strings; /* thread names, wait channels, kernel stacks */
    uint64_t carry_ns;      /* left over from threads that have gone: see ledger_settle */
    pid_t *idle_tids;       /* at the end: threads that never moved */
    size_t idle_tid_count, idle_tid_capacity;
    struct result_counts counts;
};

/* Makes empty results. Returns 0 or -ENOMEM. */
int results_init(struct results *results);
void results_free(struct results *results);

/* Counts `ticks` more samples whose stack is cut in this way. Samples that are taken back are
 * counted with a negative number. */
void results_count_samples(struct result_counts *counts, enum stack_cut cut, uint64_t ticks);

#endif
