/* What the agent keeps for each thread of the program. All of it is in one variable of at most 64
 * bytes, because a library that is loaded late gets little room for such variables (initial-exec
 * TLS): a new file adds its fields here and no variable of its own. */
#ifndef FGPROF_AGENT_THIS_THREAD_H
#define FGPROF_AGENT_THIS_THREAD_H

#include <stdint.h>

/* Zeroed in a new thread. */
struct this_thread {
    /* malloc.c: bytes until the next sample, the state of the random numbers, and the rate for
     * which the bytes were drawn; 0: not drawn yet. */
    int64_t bytes_left;
    uint64_t random;
    uint64_t rate;
    /* capture.c: the memory up to the own stack's end that was once readable; limit 0: none. */
    uint64_t stack_start, stack_limit;
    uint32_t tid;       /* see this_thread_tid */
    uint32_t is_inside; /* the thread runs the agent's own code: what that allocates, or a signal
                           handler that interrupts it, is not sampled */
};

_Static_assert(sizeof(struct this_thread) <= 64, "all that a late library can count on");

extern _Thread_local __attribute__((tls_model("initial-exec"))) struct this_thread this_thread;

/* The kernel's id of the calling thread, in its own PID namespace. */
uint32_t this_thread_tid(void);

#endif
