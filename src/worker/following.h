/* The work on one observation, from its snapshot to a stack: what the files that do it share. */
#ifndef FGPROF_WORKER_FOLLOWING_H
#define FGPROF_WORKER_FOLLOWING_H

#include "sampler/channel.h"
#include "unwind/unwind.h"
#include "worker/programs.h"

/* What was learnt about a thread to unwind it. */
struct thread_unwinding {
    /* wants.c: how much of its stacks is copied, as the sampling thread was last told. */
    size_t stack_limit;             /* bytes */
    struct stack_place other_stack; /* where the stack goes on; address 0: it does not */
    unsigned roomy_samples;         /* samples in a row that needed much less: */
    size_t roomy_limit;             /* bytes: this at most */
    unsigned other_unused;          /* samples in a row that did not go on there */
    bool is_endless;                /* no copy of its stack was long enough */
    bool leads_nowhere;             /* its last stack led to unmapped addresses */
    uint32_t asked;                 /* the serial of the last request to observe it again */
    unsigned tries;                 /* observations in a row of which more was asked for */
    /* Rounds in a row in which another stack did not help, from about the same stack pointer: */
    unsigned other_misses;
    uint64_t other_from, other_tick; /* that stack pointer, and the last such round */
    /* lost_registers.c: its registers at its last stop, which it does not show asleep. */
    uint64_t stopped_sp, stopped_frame_pointer, stopped_base_pointer;
    bool wants_registers;  /* its frame pointer was not to be had otherwise */
    struct site_keys site; /* the site at which it is to be stopped, if any */
};

/* What all observations are unwound with. */
struct following_means {
    struct unwinder *unwinder;
    struct channel *channel;
    struct results *results; /* its spaces and modules grow */
    size_t max_depth;
    bool may_stop_sleepers;
    bool tells_threads_apart; /* that were made, by their ids */
};

struct following {
    const struct following_means *means;
    const struct observation *observation;
    struct program_tables *program;
    struct thread_unwinding *thread;
    struct stack *stack;       /* what the snapshot was unwound to, */
    struct unwind_hints hints; /* and what would do better */
    bool is_old;   /* it was made before the last request was served: that is waited for */
    bool is_asked; /* more was asked for: the thread is observed again, and this is not counted */
};

/* Unwinds the snapshot, and again with maps read anew and code learnt as long as that helps.
 * Returns 0 or -ENOMEM. */
int following_unwind(struct following *following);

/* Sends a request about the thread; the caller has filled in its kind and what goes with that.
 * Returns 0 or -ENOMEM. */
int following_request(const struct following *following, struct request *request);

/* Whether the stack proves what led to it, such as a frame pointer that was found. */
static inline bool following_is_proof(const struct following *following)
{
    return following->stack->cut == STACK_WHOLE || following->stack->cut == STACK_CUT_AT_MAX_DEPTH;
}

#endif
