/* Observes running threads by samples that the kernel takes (perf_event_open(2)).
 *
 * An event of the CPU's clock samples what runs, in its own context: the user's registers, also of
 * a thread inside a system call, and the top of its stack. Nothing is stopped. The samples wait in
 * rings until they are collected.
 *
 * Where it is permitted, there is one event for each CPU: it costs the threads nothing when they
 * are switched, and sees threads as soon as they are born. Samples of other processes are dropped,
 * in the kernel if possible. Otherwise there is one event for each thread that was found running.
 */
#ifndef FGPROF_OBSERVE_PERF_SOURCE_H
#define FGPROF_OBSERVE_PERF_SOURCE_H

#include "observe/observation.h"
#include "observe/snapshot_pool.h"

/* The most of a stack that a sample holds: all of a sample is at most 65,528 bytes (struct
 * perf_event_header). */
#define PERF_STACK_LIMIT_MAX (63u << 10)

struct perf_source_options {
    uint64_t period_ns;              /* the mean CPU time between two samples, below 2^32 */
    uint64_t seed;                   /* decides how long each time is */
    uint64_t held_ns;                /* a CPU's ring has room for the samples of this time */
    size_t stack_limit;              /* bytes of stack to sample at first */
    bool has_kernel_chains;          /* samples include the kernel's call chain */
    struct snapshot_pool *snapshots; /* samples are put in these; must outlive the source */
};

enum perf_scope {
    PERF_SCOPE_CPUS,    /* events for each CPU: all running threads are sampled */
    PERF_SCOPE_THREADS, /* an event for each thread that perf_source_covers was asked for */
};

struct perf_source;

/* Nothing is sampled yet: see perf_source_follow.
 *
 * Returns 0, -EACCES or -EPERM if sampling is not permitted at all, or another negative errno. */
int perf_source_new(const struct perf_source_options *options, struct perf_source **ret_source);
/* Accepts NULL. */
void perf_source_free(struct perf_source *source);

/* Takes the next sample, whose snapshot is the caller's. Returns false if there is none now. It has
 * no thread number, process number or program yet, and `now` says nothing. */
bool perf_source_collect(struct perf_source *source, struct observation *ret_observation);

enum perf_scope perf_source_scope(const struct perf_source *source);

/* Samples of this process are collected from now on, or no longer. The first call begins to sample.
 * Returns 0 or a negative errno: the process is not sampled. */
int perf_source_follow(struct perf_source *source, pid_t process_id);
void perf_source_unfollow(struct perf_source *source, pid_t process_id);

/* Whether samples of the thread are collected whenever it runs, with so much of its stacks;
 * else it must be stopped instead. In PERF_SCOPE_THREADS it is given an event for that. */
bool perf_source_covers(struct perf_source *source, pid_t process_id, pid_t tid, size_t stack_limit,
                        const struct stack_place *other);

/* In PERF_SCOPE_THREADS: the thread is gone. */
void perf_source_forget(struct perf_source *source, pid_t tid);

/* When the process last executed a program, by the records collected so far; 0: it has not. */
uint64_t perf_source_exec_ns(const struct perf_source *source, pid_t process_id);

/* Has samples hold this much of stacks from now on. Also begins to sample CPUs that have come
 * online. Call it now and then. Returns 0 or a negative errno. */
int perf_source_adjust(struct perf_source *source, size_t stack_limit);

/* Why the thread is not sampled: its process could not be followed, or it has no event, though it
 * should have one of its own. A negative errno; 0: it is sampled. */
int perf_source_refusal(const struct perf_source *source, pid_t process_id, pid_t tid);

/* Why samples of other processes are not dropped in the kernel: a negative errno; 0: they are, or
 * there are none. */
int perf_source_filter_refusal(const struct perf_source *source);

/* Has the kernel run this program at each sample, as filter_set_next does; -1: none. Returns 0,
 * -ENOTSUP if samples are not filtered in the kernel, or another negative errno. */
int perf_source_set_next(struct perf_source *source, int program_fd);
/* Whether it does. */
bool perf_source_has_next(const struct perf_source *source);

/* How many samples the kernel has dropped because nobody collected them in time. */
uint64_t perf_source_lost(const struct perf_source *source);

#endif
