/* One thread at one moment: the value that flows from the sources to the counts.
 *
 * A source makes it, the sampling thread completes and sends it, the worker unwinds and counts it.
 * It is owned by one of them at a time, with its snapshot and its reference to the program. */
#ifndef FGPROF_OBSERVE_OBSERVATION_H
#define FGPROF_OBSERVE_OBSERVATION_H

#include "observe/snapshot.h"
#include "proc/activity.h"
#include "proc/procfs.h"
#include "proc/program.h"
#include "proc/thread_state.h"

/* How it is known. */
enum evidence {
    EVIDENCE_ASLEEP,  /* read while it slept; the kernel's count of switches proves it stayed */
    EVIDENCE_STOPPED, /* we stopped it for the copy */
    EVIDENCE_UNMOVED, /* it still sleeps where its last observation found it; nothing was copied */
    EVIDENCE_ASSUMED, /* it is there and could not be observed; nothing was copied */
    EVIDENCE_GONE,    /* it has exited, or is not sampled any more; nothing was copied */
};

/* What the kernel's account of a thread said, and when. */
struct reading {
    uint64_t at_ns; /* CLOCK_MONOTONIC; 0: there was no such reading */
    bool has_activity;
    struct activity activity;
};

/* Where a thread sleeps that is to be stopped all the same, for want of a register. */
struct sleep_place {
    uint64_t pc, sp; /* pc 0: none */
    enum thread_state state;
    long syscall_number;
};

#define WAIT_CHANNEL_BYTES 64

struct observation {
    /* Which thread: its number among those of the recording, which a later thread may have again
     * once this one is gone. */
    uint32_t thread;
    pid_t tid;
    struct program *program; /* a reference; NULL: it is not known which program it ran */
    uint32_t process;        /* the number of its process in the recording */

    /* When. */
    uint64_t tick;
    uint64_t round_ns;     /* CLOCK_MONOTONIC: when the round began that looked at it */
    bool begins;           /* the time of the thread is counted from `begin` on */
    struct reading begin;  /* at_ns; without activity: it is not known what it was then */
    struct reading asleep; /* it was still proven to sleep where its last observation found it */
    struct reading look;   /* a look after that found it running */
    struct reading now;    /* time up to now.at_ns is known by this */

    /* In which state, and how that is known. */
    enum evidence evidence;
    enum thread_state state;
    long syscall_number;                   /* that it waits in; -1: none */
    char wait_channel[WAIT_CHANNEL_BYTES]; /* the kernel's function that it waits in
                                              uninterruptibly; "": not known */
    struct sleep_place asked; /* it was to be stopped in its sleep, there; pc 0: it was not */
    uint64_t pause_ns;        /* how long it was stopped, at most */
    bool is_certain;          /* EVIDENCE_GONE: it was there until now.at_ns */
    bool is_at_end;           /* EVIDENCE_GONE: the recording ends, and the thread may live on */
    bool never_moved;         /* EVIDENCE_GONE: nor had it ever, in the whole recording */
    bool has_name;            /* it has been read since the last observation: */
    char name[THREAD_NAME_BYTES];

    /* Registers and stacks; NULL for evidence without a copy. */
    struct snapshot *snapshot;
};

/* Gives up the reference to the program. The snapshot must have been given back before. */
void observation_release(struct observation *observation);

#endif
