/* How a thread is described to the sources of observations, and the outcomes that they return.
 *
 * record_source.c knows from the kernel's record of switches where a thread was at a tick;
 * proc_source.c reads from /proc where a sleeping thread is now, with proof that it did not move;
 * switches.c knows where some threads slept at a tick that have moved since, and where a thread
 * that waits for a CPU left its last one; ptrace_source.c stops running threads with ptrace; and
 * perf_source.c has the samples that the kernel took. Sources store their own data about a thread
 * themselves, by the thread's number. */
#ifndef FGPROF_OBSERVE_SUBJECT_H
#define FGPROF_OBSERVE_SUBJECT_H

#include "observe/observation.h"

enum outcome {
    OUTCOME_OBSERVED,
    OUTCOME_UNMOVED, /* asleep since its last observation; only now and state are set */
    OUTCOME_WOKEN,   /* the same, but it was woken since, and waits for a CPU */
    OUTCOME_RUNNING, /* it runs, so this source can't observe it */
    OUTCOME_ASLEEP,  /* it sleeps, so this source can't observe it; or it was awake at the tick, and
                        sleeps by now */
    OUTCOME_PENDING, /* it will be collected later, or is lost */
    OUTCOME_GONE,    /* it has exited, or is about to */
    OUTCOME_REFUSED, /* it may not be observed, at all or for now */
};

/* The thread to observe, and what to observe. */
struct subject {
    uint32_t thread; /* its number in the recording */
    pid_t process_id, tid;
    uint64_t tick, tick_ns; /* the tick for which it is observed, and when that was; 0: none */
    int proc_fd;            /* /proc/PID of the process */
    const struct stack_areas *stack_areas; /* of the process; must live as long as anything is
                                              pending */
    size_t stack_limit;                    /* how many bytes of its stack to copy at most */
    struct stack_place other_stack;        /* also copied */
    bool leaves_stack;           /* the process's threads switch from one stack to another */
    bool wants_kernel_stack;     /* of a sleeping thread */
    bool wants_copy;             /* even if it has not moved since its last observation */
    bool waits_for_cpu;          /* it often does: if it has not moved, check whether
                                    it has been woken */
    struct python_thread python; /* layout NULL: its Python frames are not read */
    const struct context_place *context; /* where to read its context; NULL: nowhere */
    struct call_target call; /* if it has not moved, what it waits for in this call is read;
                                CALL_OTHER: it is not */
    uint64_t awake_ns;       /* CLOCK_MONOTONIC: the calling thread has not slept since */
    uint64_t came_ns;  /* when the calling thread got the CPU on which the thread was, by that CPU's
                          clock (struct last_run); 0: not known, or the thread was on another CPU */
    uint64_t visit_ns; /* CLOCK_MONOTONIC: observe it only if it ran at that time, when a visit was
                          due; 0: it was looked at for its tick */
    struct reading look;       /* the look that found it running; at_ns 0: none */
    struct sleep_place asleep; /* stop it even though it sleeps there; pc 0: do not */
};

/* For the sources, while the thread can't move, or before it is known whether it has: copies its
 * stacks and Python frames. */
void subject_copy(const struct subject *subject, struct snapshot *snapshot);
/* Likewise reads what it says it works on, if that is wanted. `thread_pointer` is found and set if
 * it is 0. */
void subject_read_context(const struct subject *subject, uint64_t *thread_pointer,
                          struct snapshot *snapshot);

#endif
