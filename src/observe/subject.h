/* A thread as the sources of observations take it, and what becomes of it.
 *
 * record_source.c knows from the kernel's record of switches where a thread was at a tick;
 * proc_source.c reads from /proc where a sleeping thread is now, with proof that it did not move;
 * switches.c knows where a thread left its CPU, if that waits for one; ptrace_source.c stops a
 * running one with ptrace; and perf_source.c has what the kernel sampled. What sources keep for a
 * thread they keep among themselves, by the thread's number. */
#ifndef FGPROF_OBSERVE_SUBJECT_H
#define FGPROF_OBSERVE_SUBJECT_H

#include "observe/observation.h"

enum outcome {
    OUTCOME_OBSERVED,
    OUTCOME_UNMOVED, /* asleep since its last observation; only now and state are set */
    OUTCOME_WOKEN,   /* the same, but it has been woken since, and waits for a CPU */
    OUTCOME_RUNNING, /* it runs, so this source can't observe it */
    OUTCOME_ASLEEP,  /* it sleeps, so this source can't observe it */
    OUTCOME_PENDING, /* it will be collected later, or is lost */
    OUTCOME_GONE,    /* it has exited, or is about to */
    OUTCOME_REFUSED, /* it may not be observed, at all or for now */
};

/* Which thread to observe, and what is wanted of it. */
struct subject {
    uint32_t thread; /* its number in the recording */
    pid_t process_id, tid;
    uint64_t tick, tick_ns; /* the tick that it is observed for, and when that was; 0: none */
    int proc_fd;            /* /proc/PID of the process */
    const struct stack_areas *stack_areas; /* of the process; must live as long as anything is
                                              pending */
    size_t stack_limit;                    /* how many bytes of its stack to copy at most */
    struct stack_place other_stack;        /* to be copied too */
    bool leaves_stack;                     /* the process's threads go from one stack to another */
    bool wants_kernel_stack;               /* of a sleeping thread */
    bool wants_copy;                       /* even if it has not moved since its last observation */
    bool waits_for_cpu;                    /* it often does: if it has not moved, it is looked
                                              whether it has been woken */
    struct python_thread python;           /* layout NULL: its Python frames are not read */
    const struct context_place *context;   /* where its context is to be read; NULL: nowhere */
    struct call_target call; /* if it has not moved, what it waits for is read of this call;
                                CALL_OTHER: it is not */
    uint64_t awake_ns;       /* CLOCK_MONOTONIC: the calling thread has not slept since */
    uint64_t came_ns;  /* when the calling thread got the CPU that the thread was on, by that CPU's
                          clock (struct last_run); 0: not known, or it was on another one */
    uint64_t visit_ns; /* CLOCK_MONOTONIC: only if it ran at that moment, at which a visit was due;
                          0: it was looked at for its tick */
    struct reading look;       /* the look that found it running; at_ns 0: none did */
    struct sleep_place asleep; /* stop it even though it sleeps there; pc 0: do not */
};

/* For the sources, while the thread can't move, or before it is known whether it has: copies its
 * stacks and Python frames, */
void subject_copy(const struct subject *subject, struct snapshot *snapshot);
/* and what it says it works on, if that is wanted. `thread_pointer` is found and set if it is 0. */
void subject_read_context(const struct subject *subject, uint64_t *thread_pointer,
                          struct snapshot *snapshot);

#endif
