/* The threads of a sampled process, and up to when the time of each has been counted. */
#ifndef FGPROF_SAMPLER_THREADS_H
#define FGPROF_SAMPLER_THREADS_H

#include "sampler/pause_budget.h"
#include "sampler/sites.h"
#include "count/ledger.h"
#include "count/timeline.h"
#include "observe/capture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct thread {
    pid_t tid;
    struct watch watch;
    struct ledger ledger;
    struct timeline_cursor timeline;
    struct pause_budget pause_budget;
    uint32_t last_sample; /* in the stack table: what its last snapshot was counted for */
    uint32_t name;
    uint64_t samples_taken;
    bool is_unwanted;                      /* not chosen by the name that it has: */
    bool was_chosen;                       /* it is, or was */
    uint64_t named_tick, next_choice_tick; /* since when it has that name, when it is read again */
    bool has_moved; /* since the recording began; else all the time at this count: */
    uint64_t first_switches;
    bool was_woken; /* by a stop that was to read its registers: that is no move of its own */
    bool is_asleep; /* the last look found it where it was the time before */
    uint64_t asleep_since_tick;
    bool is_new; /* it came while recording, and was not looked at yet */
    uint64_t looked_tick, next_look_tick;
    unsigned tries;                 /* to take its snapshot, since that look */
    bool has_endless_stack;         /* no copy of its stack was long enough */
    bool leads_nowhere;             /* its stack, to where nothing was known to be mapped */
    struct stack_place other_stack; /* where it went on from, when its stack was last unwound */
    /* At how many ticks in a row no copy of it helped, from about the same stack pointer: */
    unsigned other_stack_misses;
    uint64_t other_stack_from, other_stack_tick; /* that, and the last of them */
    size_t stack_limit; /* how much of its stack to copy, from what it used last */
    /* When it was stopped last: its stack pointer, and what it does not show asleep. */
    uint64_t stopped_sp, stopped_frame_pointer, stopped_base_pointer;
    bool must_stop; /* though it sleeps: to learn the frame pointer of its site */
    struct site_keys site;
    struct blocked blocked; /* where that is */
    bool needs_stop;        /* is to be stopped: it was found running by a look that said: */
    bool has_looked_activity;
    struct activity looked_activity;
    uint64_t looked_ns;
    uint64_t looked_awake_ns; /* of struct capture_request */
    bool is_stopping;         /* a stop of it is under way */
    bool has_exited;          /* a zombie: there, but no time of it counts */
    uint64_t gone_ns;         /* up to here that is so */
};

struct threads {
    struct thread *items; /* by tid, ascending */
    size_t count, capacity;
    struct thread *merged; /* the other buffer of threads_update */
    size_t merged_capacity;
};

typedef void thread_visit_fn(void *context, struct thread *thread);

/* Brings the table in line with the ids `tids`, ascending: calls `appeared` for
 * each new thread, which fills it in, and `vanished` for each that is no longer there. Returns 0 or
 * -ENOMEM, and then nothing has changed. */
int threads_update(struct threads *threads, const pid_t *tids, size_t tid_count,
                   thread_visit_fn *appeared, thread_visit_fn *vanished, void *context);

/* The thread with this id, or NULL. */
struct thread *threads_find(struct threads *threads, pid_t tid);

/* The first place whose thread has an id of `tid` or more; 0 behind the last. */
size_t threads_place_from(const struct threads *threads, pid_t tid);

/* Whether time of it is counted: not that of a zombie, nor of one that was not chosen. */
static inline bool thread_is_counted(const struct thread *thread)
{
    return !thread->has_exited && !thread->is_unwanted;
}

/* What was known of its sleep does not hold any more: it is captured anew. */
void thread_forget_sleep(struct thread *thread);

void threads_free(struct threads *threads);

#endif
