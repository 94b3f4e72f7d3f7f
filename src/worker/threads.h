/* What the worker knows of each thread, by its number in observations. */
#ifndef FGPROF_WORKER_THREADS_H
#define FGPROF_WORKER_THREADS_H

#include "worker/account.h"
#include "worker/unwind_step.h"
#include "worker/peer_waits.h"

/* count.c: a stack that was found while more was asked for; counted if nothing better comes. */
struct kept_stack {
    bool is_there;
    enum account kind; /* the account that it is counted for */
    uint32_t space;
    struct sample_labels labels;
    struct stack stack;
};

/* spans.c: for how long it has had its label. */
struct thread_span {
    bool is_open;
    bool is_slow; /* it has lasted long enough */
    uint64_t identity;
    uint64_t begin_ns; /* CLOCK_MONOTONIC: when it was seen first */
};

/* spans.c: what became of its last span. */
struct ended_span {
    uint64_t last_wait; /* among those of its process (count/elapsed.h); 0: it had no span */
    uint64_t told_tick; /* the process's; at the next one its waits have been placed */
    uint32_t aside;     /* where its samples count now: 0, or ASIDE_FOR_GOOD */
};

struct counted_thread {
    pid_t tid;
    uint32_t name;     /* in the results' strings */
    bool has_own_name; /* which its program gave it, and the kernel does not know */
    /* owners.c: how others refer to it, and what it waits for at this tick. */
    uint32_t process;         /* its number among those of the recording */
    pid_t inner_tid;          /* in its own PID namespace; 0: not known */
    bool is_gone, is_counted; /* among its process's threads */
    uint32_t held_plus_1;     /* in struct owners; 0: nothing is held */
    struct waited_child child;
    struct thread_account account;
    struct kept_stack kept;
    struct thread_unwinding unwinding;
    bool has_no_task;          /* its last copy shows that it has no goroutine to run */
    uint32_t goroutine;        /* that its last copy shows, by its id; 0: none, or not known */
    uint32_t label_set_plus_1; /* as its last copy had it */
    struct thread_span span;
    struct ended_span ended_span;
};

/* Zeroed at first. */
struct counted_threads {
    struct counted_thread *items;
    size_t count, capacity;
};

/* The thread with this number and id. If another thread had the number before, resets it. Valid
 * until the next call. NULL if memory is short. */
struct counted_thread *counted_threads_get(struct counted_threads *threads, uint32_t number,
                                           pid_t tid);

void kept_stack_drop(struct kept_stack *kept);

void counted_threads_free(struct counted_threads *threads);

#endif
