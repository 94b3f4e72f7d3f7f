/* From an observation's snapshot to a stack. If the snapshot alone is not enough, these help:
 * rereading the maps, generated code, a frame pointer that is found, or a request for another
 * observation. */
#ifndef FGPROF_WORKER_UNWIND_STEP_H
#define FGPROF_WORKER_UNWIND_STEP_H

#include "sampler/channel.h"
#include "unwind/unwind.h"
#include "worker/means.h"
#include "worker/programs.h"

/* What was learned about a thread for unwinding it. */
struct thread_unwinding {
    /* How much of its stacks the sampling thread copies: */
    size_t stack_limit;             /* bytes */
    struct stack_place other_stack; /* where the stack continues; address 0: nowhere */
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
    /* Its registers at its last stop, which it does not show asleep. */
    uint64_t stopped_sp, stopped_frame_pointer, stopped_base_pointer;
    uint64_t stopped_link;     /* when it was stopped at `site`; 0: not known, */
    uint64_t stopped_switches; /* and how often it had got a CPU by then */
    bool wants_registers;      /* there was no other way to get its frame pointer */
    struct site_keys site;     /* the site at which it should be stopped, if any */
};

struct unwind_step {
    const struct means *means;
    const struct observation *observation;
    struct program_tables *program;
    struct thread_unwinding *thread;
    struct stack *stack;       /* what the snapshot was unwound to, */
    struct unwind_hints hints; /* and what would do better */
    bool is_old;   /* it was made before the last request was served: that is waited for */
    bool is_asked; /* more was asked for: the thread is observed again, and this is not counted */
};

/* Unwinds the snapshot, again and again while rereading maps and learning code help. Returns 0 or
 * -ENOMEM. */
int unwind_step_run(struct unwind_step *step);

enum unwind_result {
    UNWIND_DONE,  /* count the stack */
    UNWIND_ASKED, /* the thread is observed again, and this stack is counted only if that fails */
    UNWIND_GONE,  /* it leads through unknown code, and its program has ended */
};

/* Unwinds the snapshot of `observation` into `stack`; the space of `program` is known. Returns 0 or
 * -ENOMEM. */
int unwind_observation(const struct means *means, const struct observation *observation,
                       struct program_tables *program, struct thread_unwinding *thread,
                       struct stack *stack, enum unwind_result *ret_result);

#endif
