/* The threads of a sampled process. A thread's data is grouped by the file that uses it. */
#ifndef FGPROF_SAMPLER_THREADS_H
#define FGPROF_SAMPLER_THREADS_H

#include "observe/subject.h"
#include "sampler/pause_budget.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What is done with a thread next. */
enum thread_phase {
    PHASE_LISTED,   /* the kernel's account at its begin is read next */
    PHASE_AWAKE,    /* looked at in each tick: not known to sleep longer than that */
    PHASE_ASLEEP,   /* a look found it where the previous one did: looked at ever more seldom */
    PHASE_TO_STOP,  /* stopped next: not looked at */
    PHASE_STOPPING, /* asked to stop: not looked at */
    PHASE_UNWANTED, /* not chosen by its name: only its name is read */
};

/* What changes the phase. */
enum phase_event {
    EVENT_BEGIN_READ,
    EVENT_SLEPT_ON, /* a look has proved that it still sleeps */
    EVENT_MOVED,    /* a look has found that, or its stack must be copied again */
    EVENT_STOP_WANTED,
    EVENT_STOP_BEGUN,
    EVENT_STOP_OVER, /* it was stopped and released, or can't be stopped */
    EVENT_NAME_UNWANTED,
    EVENT_NAME_WANTED,
    PHASE_EVENTS,
};

/* report.c: its life as known to the worker. */
struct thread_life {
    bool is_new;          /* it appeared while recording, and was not looked at yet */
    bool is_reported;     /* the worker counts its time, since `begin` was reported */
    struct reading begin; /* its time counts from here */
    uint64_t reported_ns; /* the worker knows its time up to here */
    bool has_exited;      /* a zombie: it exists, but none of its time counts */
    uint64_t gone_ns;     /* it is known to be a zombie up to here */
};

/* naming.c: its name, and whether it is sampled. */
struct thread_naming {
    char name[THREAD_NAME_BYTES];
    bool has_news;                  /* the worker does not know this name yet */
    uint64_t named_tick, next_tick; /* since when it has that name; when it is next read */
    uint64_t read_cpu_ns;           /* the process's CPU time when it was last read */
};

/* A tick, and when it was taken. */
struct moment {
    uint64_t tick, at_ns; /* at_ns: CLOCK_MONOTONIC */
};

/* schedule.c: when it is looked at. */
struct thread_schedule {
    uint64_t looked_tick, next_look_tick;
    uint64_t look_ticks; /* how many ticks the last look represents: those since the look before */
    uint64_t asleep_since_tick;
    struct reading proven; /* the latest time at which it is known to have still slept */
    uint64_t proven_ticks; /* how many ticks it did so that are not reported yet */
    uint64_t proven_tick;  /* the last of these */
    uint64_t unseen_ticks; /* unreported ticks at which it was off its CPU in an unknown place */
    uint64_t unseen_tick;  /* the last of these */
};

/* look.c: the system call in which it sleeps. */
struct thread_call {
    struct call_target target;
    bool is_wanted; /* what it waits for has an owner, which may change: read at each look */
};

/* missed_sleeps.c: the last places where it slept in unproven observations. */
#define MISSED_PLACES 2
struct thread_missed_sleeps {
    struct missed_sleep {
        struct sleep_place place;
        uint32_t ticks; /* 0: none */
    } sleeps[MISSED_PLACES];
    unsigned next; /* next slot to overwrite */
};

/* idle.c: whether it has moved at all since the recording began. */
struct thread_idle {
    bool has_moved;
    uint64_t first_switches; /* its number of switches while it has not moved */
    /* A stop to read its registers woke it here, which does not count as a move. pc 0: none. */
    struct sleep_place woken_at;
};

/* rounds.c, requests.c: what its next observation must provide. */
struct thread_wants {
    size_t stack_limit; /* bytes of its stack to copy */
    struct stack_place other_stack;
    bool copy;                 /* copy its stack even if it has not moved */
    struct sleep_place asleep; /* stop it while it sleeps in this place; pc 0: do not */
    bool is_dumped;            /* a dump has its stack */
    uint64_t spared_ticks;     /* since its last stop: it was found running, but not stopped */
    uint32_t served;           /* the serial of the last request that was served */
    uint32_t unasked;          /* copies reported since the worker's last request */
};

/* kernel_samples.c: whether the kernel samples it. */
struct thread_kernel {
    bool is_sampled;             /* since the last look that found it running */
    bool was_renewed;            /* since the last sample, its event was closed to get a new one */
    uint64_t running_ns;         /* its running time when last observed running, */
    uint64_t sampled_running_ns; /* and at the last such look that came after a sample */
    uint64_t awaited_ns;         /* a dump waits for its sample since then; 0: it does not */
    bool lacks_python; /* a sample lacked some of its Python frames: it is stopped from then on */
};

/* switch_events.c: whether it waits much for a CPU, and whether it has an event for its switches.
 */
struct thread_switch_events {
    struct reading before;   /* its waits for a CPU are known since this look; at_ns 0: none */
    bool waits;              /* for a CPU, much */
    uint64_t switches_per_s; /* of late; 0: not known yet */
    bool needs_registers;    /* it sleeps where /proc does not show enough */
};

/* look.c: the last look that found it running. */
struct thread_running_look {
    struct reading now; /* at_ns 0: there was none */
    uint64_t awake_ns;  /* as in struct subject */
    uint64_t tick;
    uint64_t visit_ns; /* CLOCK_MONOTONIC: when the visit that made the look was due; 0: a tick made
                          it */
    bool has_context;  /* otel_context.c: the thread's context was read then: */
    uint64_t context_hash;
};

/* taken_cpu.c: whether it is stopped at a visit. */
struct thread_visits {
    bool is_here;         /* the last look or visit was made from its CPU */
    bool was_found;       /* by a visit, since a look last stopped it */
    bool is_out_of_reach; /* the last look found it on a CPU to which we can't go */
};

/* Facts for which a thread is counted once, in struct sampling_counts. */
enum thread_fact {
    FACT_CHOSEN = 1 << 0,
    FACT_STOPPED = 1 << 1,
    FACT_KERNEL_SAMPLED = 1 << 2,
    FACT_WITHOUT_EVENT = 1 << 3,
    FACT_UNSAMPLED = 1 << 4, /* not sampled by the kernel although it had an event */
    FACT_WAITS_UNSEEN = 1 << 5,
};

struct thread {
    pid_t tid;
    pid_t inner_tid; /* in its own PID namespace; 0: not read yet, or not known */
    uint32_t number; /* among the threads of the recording: see sampler/numbers.h */
    enum thread_phase phase;
    struct thread_life life;
    struct thread_naming naming;
    struct thread_schedule schedule;
    struct thread_call call;
    struct thread_missed_sleeps missed_sleeps;
    struct thread_idle idle;
    struct thread_wants wants;
    struct pause_budget pause_budget;
    struct thread_kernel kernel;
    struct thread_switch_events switch_events;
    struct thread_running_look running;
    struct thread_visits visits;
    bool is_awake;   /* look.c: its last look found it running or waiting for a CPU */
    uint64_t ran_ns; /* activity_check.c: how long it had run in all at its last look */
    unsigned facts;  /* enum thread_fact: those for which it has been counted */
};

struct threads {
    struct thread *items; /* by tid, ascending */
    size_t count, capacity;
    uint64_t *due_ticks; /* rounds.c: for each thread, the tick before which it is not due, unless
                            all are. Each tick reads all of these, but few of the threads. */
    size_t due_capacity;
    struct thread *merged; /* the other buffer of threads_update */
    size_t merged_capacity;
};

typedef void thread_visit_fn(void *context, struct thread *thread);

/* Updates the table to the ids `tids`, which are ascending: calls `appeared` for each new thread,
 * to fill it in, and `vanished` for each that is no longer there. Returns 0 or -ENOMEM; on error
 * nothing has changed. */
int threads_update(struct threads *threads, const pid_t *tids, size_t tid_count,
                   thread_visit_fn *appeared, thread_visit_fn *vanished, void *context);

/* The thread with this id, or NULL. */
struct thread *threads_find(struct threads *threads, pid_t tid);

/* The first index whose thread has an id of at least `tid`; 0 if there is none. */
size_t threads_place_from(const struct threads *threads, pid_t tid);

/* Whether the thread's time is counted: not for a zombie or a thread that was not chosen. */
static inline bool thread_is_counted(const struct thread *thread)
{
    return !thread->life.has_exited && thread->phase != PHASE_UNWANTED;
}

/* Whether the thread is stopped next, or was asked to stop. */
static inline bool thread_is_in_a_stop(const struct thread *thread)
{
    return thread->phase == PHASE_TO_STOP || thread->phase == PHASE_STOPPING;
}

/* Adds the thread to the counter, unless it was counted before. */
static inline void thread_count_once(struct thread *thread, enum thread_fact fact,
                                     uint64_t *counter)
{
    *counter += !(thread->facts & fact);
    thread->facts |= fact;
}

/* Changes the thread's phase according to the event. */
void thread_note(struct thread *thread, enum phase_event event);

/* Forgets the sleep of one of the threads: it is looked at and copied again. */
void threads_forget_sleep(struct threads *threads, struct thread *thread);

void threads_free(struct threads *threads);

#endif
