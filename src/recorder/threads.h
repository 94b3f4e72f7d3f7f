/* The threads of a sampled process, and up to when the time of each has been counted. */
#ifndef FGPROF_RECORDER_THREADS_H
#define FGPROF_RECORDER_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct thread {
    pid_t tid;
    uint64_t counted_tick; /* ticks up to this one have been counted for it */
    uint64_t counted_ns;   /* its time up to this moment too */
    uint32_t name;
    uint64_t samples_taken;
    size_t stack_limit; /* how much of its stack to copy, from what it used last */
    bool has_exited;    /* a zombie: there, but no time of it counts */
};

struct threads {
    struct thread *items; /* by tid, ascending */
    size_t count, capacity;
    struct thread *merged; /* the other buffer of threads_update */
    size_t merged_capacity;
    pid_t *tids;
    size_t tid_capacity;
};

typedef void thread_visit_fn(void *context, struct thread *thread);

/* Brings the table in line with `tid_count` ids in threads->tids, ascending: calls `appeared` for
 * each new thread, which fills it in, and `vanished` for each that is no longer there. Returns 0 or
 * -ENOMEM, and then nothing has changed. */
int threads_update(struct threads *threads, size_t tid_count, thread_visit_fn *appeared,
                   thread_visit_fn *vanished, void *context);

/* The thread with this id, or NULL. */
struct thread *threads_find(struct threads *threads, pid_t tid);

/* The first place whose thread has an id of `tid` or more; 0 behind the last. */
size_t threads_place_from(const struct threads *threads, pid_t tid);

void threads_free(struct threads *threads);

#endif
