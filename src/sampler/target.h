/* One process that is being sampled.
 *
 * A round looks at each of its threads once: who sleeps is read and counted at once. Who runs is
 * then asked to stop, all together, and counted as they do. One that has not stopped by the next
 * tick holds up nobody: it waits on, and what it missed is counted with its next stack. */
#ifndef FGPROF_SAMPLER_TARGET_H
#define FGPROF_SAMPLER_TARGET_H

#include "sampler/options.h"
#include "sampler/recording.h"
#include "sampler/sites.h"
#include "sampler/stops.h"
#include "sampler/threads.h"
#include "jit/files.h"
#include "jit/source.h"
#include "observe/capture.h"
#include "proc/process.h"

/* Reading what a target writes of the code that it generates: see target_jit.h. */
struct target_jit {
    bool has_owner, is_refused;
    struct jit_owner owner;
    struct jit_source map, dump;
    unsigned replacements;        /* of code that was sampled */
    uint64_t read_ns, reading_ns; /* when it was read, and how long that took */
};

struct target {
    struct recording *recording;
    const struct sampling_options *options;
    struct process process;
    uint32_t number;     /* in the recording's stack_table.processes */
    bool is_followed;    /* it is a descendant of another one, and was not asked for by its id */
    struct space *space; /* NULL: it can't be looked at now */
    struct target_jit jit;
    int mem_fd; /* of the program in `space`: ends when it executes another */
    int maps_fd;
    bool is_in_parents_memory; /* that outlives what is run in it: see process_shares_memory */
    struct stack_areas stack_areas;
    struct threads threads;
    bool must_list_threads; /* one has gone since they were listed */
    struct capture look;    /* the last one without a stop */
    struct snapshot look_snapshot;
    struct stops stops;
    const struct capture *capture; /* the one at hand, of both kinds, */
    struct snapshot *snapshot;     /* its snapshot, */
    struct stack stack;            /* and what that was unwound to */
    struct sites sites;            /* frame pointers of sleeping threads, where they were needed */
    pid_t next_look_tid, next_tid; /* where looks go on, and stops */
    size_t stops_left;             /* threads with needs_stop */
    uint64_t areas_read_ns;        /* when stack_areas was */
    struct thread_list listing;
    uint64_t listing_began_ns;   /* the one under way, or the last */
    uint64_t listed_ns;          /* when the last whole one began */
    uint64_t listing_ns;         /* how long it took, on the CPU */
    uint64_t threads_changed_ns; /* when the last one began that found one come or gone */
    uint64_t round_ns;           /* when this round began, and the one before */
    uint64_t last_round_ns;
    uint64_t maps_read_ns;
    uint64_t maps_reading_ns; /* how long that took */
    unsigned spare_readings;  /* of a new program's maps, beyond one a round */
    bool has_exited;
    bool has_exit_status; /* it was a child, and its end was seen while stopping it */
    int exit_status;
};

/* Opens `pid` for sampling. Returns 0 or what process_open does. */
int target_open(struct target *target, pid_t pid, struct recording *recording,
                const struct sampling_options *options);
void target_close(struct target *target);

/* Takes in the threads that are there when the recording starts: their time counts from then. */
int target_start(struct target *target);

/* Takes in the threads of a process that was not there at `unseen_ns`; `looked_ns`: when such were
 * looked for last. It stands for those that came and went unseen since, as a thread does. */
int target_join(struct target *target, uint64_t unseen_ns, uint64_t looked_ns);

/* Begins a round: looks at all threads, and stops none. Returns 0 or -ENOMEM. */
int target_begin_round(struct target *target);

/* Goes on with the stops that are to be made as far as it can without waiting for long. Returns 0
 * or -ENOMEM. */
int target_continue_round(struct target *target);

/* Of a dump: whether a thread was neither counted nor is being stopped for it. */
bool target_lacks_sample(const struct target *target);

/* At the end: settles what threads have not been counted for. */
int target_finish(struct target *target);

#endif
