/* Observes running threads by samples that the kernel takes (perf_event_open(2)).
 *
 * A CPU clock event samples the running thread in its own context: the user registers, even of a
 * thread inside a system call, and the top of its stack. Nothing is stopped. The samples wait in
 * rings until they are collected.
 *
 * If permitted, there is one event for each CPU: it adds no cost to context switches, and sees
 * threads as soon as they are born. Samples of other processes are dropped, in the kernel if
 * possible. Otherwise there is one event for each thread that was found running. */
#ifndef FGPROF_OBSERVE_PERF_SOURCE_H
#define FGPROF_OBSERVE_PERF_SOURCE_H

#include "observe/observation.h"
#include "observe/snapshot_pool.h"

/* The most stack that a sample can hold: a whole sample has at most 65,528 bytes (struct
 * perf_event_header). */
#define PERF_STACK_LIMIT_MAX (63u << 10)

struct perf_source_options {
    uint64_t period_ns;              /* the mean CPU time between two samples, below 2^32 */
    uint64_t seed;                   /* decides the length of each interval */
    uint64_t held_ns;                /* a CPU's ring has room for the samples of this span */
    size_t stack_limit;              /* bytes of stack to sample at first */
    bool has_kernel_chains;          /* samples include the kernel's call chain */
    struct snapshot_pool *snapshots; /* where samples are stored; must outlive the source */
};

enum perf_scope {
    PERF_SCOPE_CPUS,    /* events for each CPU: all running threads are sampled */
    PERF_SCOPE_THREADS, /* an event for each thread passed to perf_source_covers */
};

struct perf_source;

/* Opens a source, which does not sample yet: see perf_source_follow.
 *
 * Returns 0, -EACCES or -EPERM if sampling is not permitted at all, or another negative errno. */
int perf_source_new(const struct perf_source_options *options, struct perf_source **ret_source);
/* Accepts NULL. */
void perf_source_free(struct perf_source *source);

/* Takes the next sample; the caller owns its snapshot. Returns false if there is none now. The
 * sample has no thread number, process number or program yet, and `now` is empty. */
bool perf_source_collect(struct perf_source *source, struct observation *ret_observation);

enum perf_scope perf_source_scope(const struct perf_source *source);

/* Starts or stops collecting samples of this process. The first call starts sampling. Returns 0 or
 * a negative errno, on which the process is not sampled. */
int perf_source_follow(struct perf_source *source, pid_t process_id);
void perf_source_unfollow(struct perf_source *source, pid_t process_id);

/* Whether samples of the thread are collected whenever it runs, with this much of its stacks; else
 * it must be stopped instead. In PERF_SCOPE_THREADS it is given an event for that. */
bool perf_source_covers(struct perf_source *source, pid_t process_id, pid_t tid, size_t stack_limit,
                        const struct stack_place *other);

/* In PERF_SCOPE_THREADS: the thread is gone. */
void perf_source_forget(struct perf_source *source, pid_t tid);

/* When the process last executed a program, by the records collected so far; 0: never. */
uint64_t perf_source_exec_ns(const struct perf_source *source, pid_t process_id);

/* Sets how much stack samples hold from now on. Also starts sampling CPUs that have come online, so
 * call it now and then. Returns 0 or a negative errno. */
int perf_source_adjust(struct perf_source *source, size_t stack_limit);

/* Why the thread is not sampled: its process could not be followed, or it lacks an event of its
 * own. A negative errno; 0: it is sampled. */
int perf_source_refusal(const struct perf_source *source, pid_t process_id, pid_t tid);

/* Why samples of other processes are not dropped in the kernel: a negative errno; 0: they are, or
 * there are none. */
int perf_source_filter_refusal(const struct perf_source *source);

/* Makes the kernel run this BPF program at each sample, as filter_set_next does; -1: none. Returns
 * 0, -ENOTSUP if samples are not filtered in the kernel, or another negative errno. */
int perf_source_set_next(struct perf_source *source, int program_fd);
/* Whether such a program is set. */
bool perf_source_has_next(const struct perf_source *source);

/* How many samples the kernel has dropped because they were not collected in time. */
uint64_t perf_source_lost(const struct perf_source *source);

#endif
