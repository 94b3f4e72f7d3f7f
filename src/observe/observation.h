/* One thread at one moment: the value that flows from the sources to the counts.
 *
 * A source makes it, the sampling thread completes and sends it, the worker unwinds and counts it.
 * It has one owner at a time, which also owns its snapshot and its reference to the program. */
#ifndef FGPROF_OBSERVE_OBSERVATION_H
#define FGPROF_OBSERVE_OBSERVATION_H

#include "observe/call.h"
#include "observe/snapshot.h"
#include "observe/wake.h"
#include "proc/activity.h"
#include "proc/procfs.h"
#include "proc/program.h"
#include "proc/thread_state.h"

/* How the thread's state is known. */
enum evidence {
    EVIDENCE_ASLEEP,  /* read while it slept, as the kernel's count of switches proves, or recorded
                         when it fell asleep */
    EVIDENCE_STOPPED, /* we stopped it for the copy */
    EVIDENCE_WAITING, /* it waits for a CPU where it left one; that no switch followed proves it */
    EVIDENCE_SAMPLED, /* the kernel sampled it while it ran */
    EVIDENCE_UNMOVED, /* it still sleeps where its last observation found it; nothing was copied */
    EVIDENCE_WOKEN,   /* the same, but it was woken and waits for a CPU; nothing was copied */
    EVIDENCE_ASSUMED, /* it exists but could not be observed; nothing was copied */
    EVIDENCE_GONE,    /* it has exited, or is no longer sampled; nothing was copied */
};

/* The kernel's account of a thread, and when it was read. */
struct reading {
    uint64_t at_ns; /* CLOCK_MONOTONIC; 0: there was no such reading */
    bool has_activity;
    struct activity activity;
};

/* Whether the reading has the thread's times, and not only its number of switches. */
static inline bool reading_has_times(const struct reading *reading)
{
    return reading->has_activity && !reading->activity.counts_ends;
}

/* Where a thread sleeps, to recognize the place or to stop the thread there if a register is
 * needed. */
struct sleep_place {
    uint64_t pc, sp; /* pc 0: none */
    enum thread_state state;
    long syscall_number;
};

/* Whether a thread with these registers is in that place. */
static inline bool sleep_place_has(const struct sleep_place *place,
                                   const struct registers *registers)
{
    return place->pc && place->pc == registers_pc(registers) &&
           place->sp == registers_sp(registers);
}

/* What is known of a thread's time before `now`. */
struct time_before {
    bool begins;           /* its time is counted from `begin` on */
    struct reading begin;  /* only at_ns if the activity at that time is unknown */
    struct reading asleep; /* when it still slept where its last observation found it: proven, or
                              inferred from the CPU time of its process */
    uint64_t asleep_ticks; /* how many ticks it did so since the last proof */
    uint64_t asleep_tick;  /* the last of these */
    uint64_t unseen_ticks; /* ticks at which it was off its CPU in a place unknown to the record */
    uint64_t unseen_tick;  /* the last of these */
    struct reading look;   /* a later look that found it running */
};

#define WAIT_CHANNEL_BYTES 64

/* The call in which a sleeping thread waits, and what it waits for. */
struct wait_seen {
    long syscall_number;              /* the system call; -1: none */
    char channel[WAIT_CHANNEL_BYTES]; /* the kernel function in which it waits uninterruptibly; "":
                                         unknown */
    bool has_preemptions;             /* read now and then, at a new wait for a futex: */
    uint64_t preemptions;             /* how often it has been preempted in total */
    bool has_call;                    /* what it waits for was read: */
    struct call_target call;
    struct call_memory memory;
    /* A futex's memory is known from when the thread left its CPU, and from the look: `memory` is
     * the one nearer to the tick. */
    bool is_left;   /* `memory` is from when the thread left its CPU */
    bool has_other; /* snapshot->other_futex has the other one */
};

/* EVIDENCE_ASLEEP. */
struct sleep_seen {
    bool was_asleep; /* by its registers and its call, but it moved before that was proven */
    bool is_over;    /* the sleep was proven, and the thread has moved since */
};

/* EVIDENCE_STOPPED. */
struct stop_seen {
    uint64_t pause_ns; /* upper bound of how long it was stopped */
    uint64_t visit_ns; /* CLOCK_MONOTONIC: when it was visited; 0: it was looked at for a tick */
    struct sleep_place asked; /* where it slept and was stopped on request; pc 0: it was not */
    uint64_t switches;        /* how often it had got a CPU by then; 0: not known */
};

/* EVIDENCE_SAMPLED. */
struct kernel_sample {
    uint64_t at_ns;      /* CLOCK_MONOTONIC */
    bool waits_are_seen; /* its waits for a CPU are also observed */
};

/* EVIDENCE_GONE. */
struct thread_end {
    bool is_certain;  /* it existed until now.at_ns */
    bool is_at_end;   /* the recording ends, and the thread may live on */
    bool never_moved; /* in the whole recording */
};

/* The thread's time off its CPU, by the kernel's record of switches. Times are CLOCK_MONOTONIC; all
 * 0: the record does not have it. */
struct record_seen {
    uint64_t departed_ns;     /* when it left its CPU for where it was found */
    uint64_t woken_ns;        /* it has waited for a CPU again since then; 0: it does not */
    uint64_t returned_ns;     /* when it was back on a CPU; 0: it is not */
    unsigned woken_cpu;       /* the CPU for which it waits since then, */
    uint64_t moved_ns;        /* until it was moved to another CPU's queue; 0: it was not */
    struct cpu_user cpu_user; /* which thread had that CPU at a tick */
};

struct observation {
    /* The thread's number in the recording. A later thread may get the same number once this one is
     * gone. */
    uint32_t thread;
    pid_t process_id, tid;
    pid_t inner_tid;   /* its id in its own PID namespace (pid_namespaces(7)); 0: not known */
    bool knows_python; /* the process is known to run Python: frames were read, if there are any */
    struct program *program; /* a reference; NULL: the program that it ran is not known */
    uint32_t process;        /* the number of its process in the recording */
    bool has_name;           /* `name` was read since the last observation */
    char name[THREAD_NAME_BYTES];

    /* When. */
    uint64_t tick;
    uint64_t ticks; /* how many ticks it represents: those since the previous look, if there were
                       ticks without a look */
    uint64_t missed_ticks; /* earlier ticks at which it slept in the same place, but moved before
                              that was proven: see sampler/missed_sleeps.h */
    uint64_t round_ns;     /* CLOCK_MONOTONIC: when the round that looked at it began */
    struct time_before before;
    struct reading now; /* accounts for the time up to now.at_ns; without a reading, a later
                           observation does so */

    /* Its state, and how that is known. */
    enum thread_state state;
    struct wait_seen wait;
    struct record_seen record;
    enum evidence evidence; /* selects one of these: */
    union {
        struct sleep_seen asleep;
        struct stop_seen stop;
        struct kernel_sample sampled;
        struct thread_end end;
    };

    uint32_t served; /* the serial of the last request served before this observation */
    /* Registers and stacks; NULL for evidence without a copy. */
    struct snapshot *snapshot;
};

/* A thread through which the process can be read now: the observed thread may have exited since.
 * The observation must have a program. */
pid_t observation_live_tid(const struct observation *observation);

/* Drops the reference to the program. The snapshot must already have been given back. */
void observation_release(struct observation *observation);

#endif
