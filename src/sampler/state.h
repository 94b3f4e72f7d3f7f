/* The sampling thread's state: one recording's processes, and the means to observe them. */
#ifndef FGPROF_SAMPLER_STATE_H
#define FGPROF_SAMPLER_STATE_H

#include "base/clock.h"
#include "base/throttle.h"
#include "base/ticks.h"
#include "objects/collector.h"
#include "observe/perf_source.h"
#include "observe/ptrace_source.h"
#include "observe/record_source.h"
#include "observe/switches.h"
#include "observe/watch.h"
#include "proc/cpu_limits.h"
#include "proc/descendants.h"
#include "sampler/channel.h"
#include "sampler/numbers.h"
#include "sampler/options.h"
#include "sampler/process.h"

#include <sched.h>
#include <stdatomic.h>

/* A recording's time, in CLOCK_MONOTONIC. */
struct clock {
    struct ticks ticks;     /* since the start of the recording */
    uint64_t start_time_ns; /* the start in wall-clock time, since 1970 */
    uint64_t end_ns;        /* 0 until the recording ends */
    uint64_t awake_ns;      /* the sampling thread has not waited for a tick since then */
};

/* The time up to which time is counted: now, or the end once that is reached. */
static inline uint64_t clock_now_ns(const struct clock *clock)
{
    return clock->end_ns ? clock->end_ns : monotonic_ns();
}

/* What other threads may read while it samples. */
struct sampler_progress {
    _Atomic uint64_t elapsed_ns;
    _Atomic uint64_t threads; /* alive at the last tick */
    _Atomic uint64_t ticks, ticks_late;
    _Atomic uint64_t samples_lost;
    atomic_bool wants_copy, wants_moment; /* request flags, cleared by the sampling thread */
};

/* The spawned command, if there is one. */
struct command {
    pid_t pid;           /* 0: none */
    atomic_bool has_end; /* its end was noticed while stopping it: */
    int status;          /* as from waitpid(2) */
};

#define KERNEL_SAMPLES_HELD 64

/* kernel_samples.c: samples that the kernel takes of running threads. */
struct kernel_samples {
    struct perf_source *source;                   /* NULL: running threads are stopped instead */
    bool was_begun;                               /* the source was opened, or refused */
    bool has_joined_record;                       /* samples have Python frames from the record */
    bool is_awaited;                              /* a dump waits for a thread's sample */
    struct observation held[KERNEL_SAMPLES_HELD]; /* of threads that are not known yet */
    size_t held_count;
    size_t stack_limit;        /* how much of a stack a sample holds */
    size_t wanted_stack_limit; /* the most that any thread wanted since adjusted_ns */
    uint64_t adjusted_ns;
};

/* off_cpu_samples.c: where threads were off their CPU. */
struct record_opening;
struct off_cpu_samples {
    struct record_opening *opening; /* NULL: it is not being opened */
    struct switch_record *record;   /* NULL: there is none */
    struct record_source source;    /* observes threads by it */
    bool was_begun;                 /* the record was opened, or refused */
    uint64_t without_stack;         /* waits that were recorded without a usable stack */
    unsigned waker_stacks;          /* of threads that ended waits, since the last tick */
    uint64_t wait_ns; /* when a wait for a CPU was last found; 0: so long ago that CPUs are no
                         longer watched */
};

/* taken_cpu.c, visits.c: where running threads are stopped. */
#define VISITS_WANTED_MAX 64
struct visits {
    bool is_possible; /* the CPUs on which the sampling thread may run are known: */
    cpu_set_t home;
    int proc_fd_plus_1; /* /proc/PID of this process; 0: not open */
    bool are_made;      /* some thread is visited, though the kernel may sample the others */
    struct watch own;   /* of the sampling thread */
    uint64_t came_ns;   /* when it got its current CPU, by that CPU's clock; 0: not known */
    bool is_away;       /* it stays on one CPU: */
    int cpu;
    bool has_stops; /* threads can't stop before it gives them its CPU */
    struct wanted_visit {
        uint32_t thread;
        pid_t tid;
    } wanted[VISITS_WANTED_MAX]; /* threads that have run, to be visited before the next tick */
    size_t wanted_count;
    uint32_t wanted_more;     /* threads that did not fit in `wanted` */
    size_t left;              /* how many visits may be made before the next tick */
    uint64_t at_ns;           /* CLOCK_MONOTONIC: a visit is due then; 0: none */
    struct wanted_visit next; /* the thread to visit then */
};

struct sampler {
    const struct sampler_options *options;
    struct clock clock;
    struct channel *channel;
    struct watches watches;
    struct ptrace_source *stopped;
    struct switches *switches;
    struct kernel_samples kernel;
    struct off_cpu_samples off_cpu;
    struct visits visits;
    struct collector *collector; /* of objects; NULL: none are wanted */
    struct numbers numbers;
    struct sampled_process **processes;
    size_t process_count, process_capacity;
    uint32_t processes_begun, programs_begun; /* how many have received numbers */
    struct descendants descendants;           /* the processes whose descendants are followed */
    struct command command;
    struct cpu_limits cpu_limits; /* of the processes, including those that have ended */
    struct sampling_counts counts;
    struct sampler_progress progress;
    struct thread_context context; /* a buffer to read a context into */
    struct snapshot *spare;        /* for the next look; NULL: none was taken */
    bool awaits_objects;      /* a copy waits until the collector has sent its messages before it */
    bool looks_at_all;        /* for a copy or a moment: all threads are looked at and reported */
    uint64_t let_go_ns;       /* when stops_let_go last ran */
    uint64_t stop_heard_ns;   /* when a thread last stopped, estimated from when we heard of it */
    struct throttle yielding; /* yielding our CPU to threads that were woken there */
    size_t first_process;     /* the process whose threads are stopped first in this round */
    uint32_t heard;           /* channel_heard, before requests were last taken */
    atomic_bool is_to_stop;   /* sampling is to end */
};

/* The process with this id; NULL: it is not sampled. Another process may have had that id
 * before. */
static inline struct sampled_process *sampler_process(const struct sampler *sampler, pid_t pid)
{
    struct sampled_process *found = NULL;
    for (size_t i = 0; i < sampler->process_count; i++) {
        struct sampled_process *process = sampler->processes[i];
        if (process->process.pid == pid && (!found || found->has_exited))
            found = process;
    }
    return found;
}

#endif
