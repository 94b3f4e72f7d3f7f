/* A dump: the stack of each thread, once, and what it waits for. */
#ifndef FGPROF_PROFILE_DUMP_H
#define FGPROF_PROFILE_DUMP_H

#include "profile/profile.h"
#include "wait/wait_list.h"
#include "wait/lock.h"
#include "worker/runtime_tasks.h"

#include <stddef.h>
#include <stdint.h>

struct dump_thread {
    const struct profile_sample *sample;
    const struct wait_facts *facts;
    struct lock lock; /* if it waits for a futex */
    struct resource resource;
    size_t owner;        /* the number of the thread that holds the lock, or whose exit the thread
                            waits for; or DUMP_NOBODY */
    bool is_owner_gone;  /* the owner is no longer a thread of the process */
    pid_t owner_process; /* that of the owner, or that must act for the wait to end; 0: not known */
    size_t deadlock;     /* the deadlock that it is in, numbered from 1; 0: none */
};

struct dump_task { /* a goroutine, or a task of asyncio */
    const struct runtime_task *listed;
    const struct profile_sample *sample; /* NULL: it is on a thread */
};

/* How many goroutines wait for what is at the address: a channel, or a lock. */
struct dump_waiters {
    uint64_t address, process_id;
    size_t count;
};

#define DUMP_NOBODY SIZE_MAX

struct fgprof_dump {
    struct fgprof_profile *profile; /* by id, with one sample for each thread, goroutine and
                                       task */
    struct wait_list waits;
    struct dump_thread *threads; /* by process, then by id */
    size_t thread_count;
    size_t deadlock_count;
    struct runtime_tasks listed;
    struct dump_task *tasks; /* by process: goroutines by id, then tasks of asyncio by id */
    size_t task_count;
    struct dump_waiters *waiters;
    size_t waiter_count, waiter_capacity;
    struct index waiter_index;
    bool leaves_out_threads; /* which have no goroutine */
};

/* Joins the profile and the facts. Returns 0 or -ENOMEM. */
int dump_complete(struct fgprof_dump *dump);

/* The first thread of the deadlock with this number, from 1 to dump->deadlock_count. Each next
 * thread is the owner of the one before. */
const struct dump_thread *dump_first_of_deadlock(const struct fgprof_dump *dump, size_t number);

/* How many goroutines wait for what is at the address. */
size_t dump_count_waiters(const struct fgprof_dump *dump, pid_t process_id, uint64_t address);

/* Finds threads that wait for each other in a cycle. waits_for[i] is the number of the thread that
 * thread i waits for, or DUMP_NOBODY; each waits for at most one. Sets cycles[i] to the number of
 * the cycle that thread i is in, from 1, or to 0 if it is in none, even if it waits for a thread in
 * one. Returns the number of cycles. */
size_t deadlocks_find(const size_t *waits_for, size_t count, size_t *cycles);

#endif
