/* The threads of a sampled process. What is known of a thread is divided by who uses it. */
#ifndef FGPROF_SAMPLER_THREADS_H
#define FGPROF_SAMPLER_THREADS_H

#include "observe/source.h"
#include "sampler/pause_budget.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* tell.c: its life as far as the worker knows of it. */
struct thread_life {
    bool is_new;          /* it came while recording, and was not looked at yet */
    bool is_told;         /* the worker counts its time, since it was told of `begin` */
    struct reading begin; /* its time counts from here */
    uint64_t told_ns;     /* the worker knows of its time up to here */
    bool has_exited;      /* a zombie: it exists, but none of its time counts */
    uint64_t gone_ns;     /* it is known to be a zombie up to here */
};

/* naming.c: its name, and whether it is sampled. */
struct thread_naming {
    char name[THREAD_NAME_BYTES];
    bool has_news; /* the worker does not know this name yet */
    bool is_unwanted;
    bool was_chosen;                /* it is wanted, or once was */
    uint64_t named_tick, next_tick; /* since when it has that name; when it is next read */
};

/* schedule.c: when it is looked at. */
struct thread_schedule {
    uint64_t looked_tick, next_look_tick;
    uint64_t told_tick; /* that the worker was last told of */
    bool is_asleep;     /* the last look found it where the one before did */
    uint64_t asleep_since_tick;
    struct reading proven; /* the last look that proved that it sleeps on */
};

/* movement.c: whether it has moved since the recording began. */
struct thread_movement {
    bool has_moved;
    uint64_t first_switches; /* its count of switches, while it has not moved */
    /* A stop to read its registers woke it here, which is no move of its own. pc 0: none did. */
    struct sleep_place woken_at;
};

/* rounds.c, requests.c: what is wanted of its next observation. */
struct thread_wants {
    size_t stack_limit; /* bytes of its stack to copy */
    struct stack_place other_stack;
    bool copy;                 /* even if it has not moved */
    struct sleep_place asleep; /* stop it in its sleep, at this place; pc 0: do not */
    bool stop;                 /* stop it: found running by this look, or asleep */
    struct reading look;       /* the last look that found it running, not told yet */
    uint64_t look_awake_ns;    /* as in struct subject */
    uint64_t look_tick;        /* the tick of that look */
    bool is_stopping;          /* it is being stopped */
    bool is_dumped;            /* a dump has its stack */
    uint32_t served;           /* the serial of the last request that was served */
};

struct thread {
    pid_t tid;
    uint32_t number; /* among the threads of the recording: see sampler/numbers.h */
    struct thread_life life;
    struct thread_naming naming;
    struct thread_schedule schedule;
    struct thread_movement movement;
    struct thread_wants wants;
    struct pause_budget pause_budget;
};

struct threads {
    struct thread *items; /* by tid, ascending */
    size_t count, capacity;
    struct thread *merged; /* the other buffer of threads_update */
    size_t merged_capacity;
};

typedef void thread_visit_fn(void *context, struct thread *thread);

/* Brings the table in line with the ids `tids`, ascending: calls `appeared` for each new thread,
 * which fills it in, and `vanished` for each that is no longer there. Returns 0 or -ENOMEM, and
 * then nothing has changed. */
int threads_update(struct threads *threads, const pid_t *tids, size_t tid_count,
                   thread_visit_fn *appeared, thread_visit_fn *vanished, void *context);

/* The thread with this id, or NULL. */
struct thread *threads_find(struct threads *threads, pid_t tid);

/* The first index whose thread has an id of `tid` or more; 0 if there is none. */
size_t threads_place_from(const struct threads *threads, pid_t tid);

/* Whether its time is counted: not for a zombie or a thread that was not chosen. */
static inline bool thread_is_counted(const struct thread *thread)
{
    return !thread->life.has_exited && !thread->naming.is_unwanted;
}

/* Forgets what was known of its sleep: it is looked at and copied anew. */
static inline void thread_forget_sleep(struct thread *thread)
{
    thread->wants.copy = true;
    thread->schedule.is_asleep = false;
    thread->schedule.next_look_tick = 0;
}

void threads_free(struct threads *threads);

#endif
