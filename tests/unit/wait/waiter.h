/* A thread that waits, and what the kernel shows of its system call. */
#ifndef FGPROF_TESTS_WAITER_H
#define FGPROF_TESTS_WAITER_H

#include "unit.h"
#include "observe/watch.h"
#include "observe/call.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

struct waiter {
    pthread_t thread;
    void *(*run)(void *);
    void *argument;
    _Atomic pid_t tid;
};

static inline void *waiter_run(void *argument)
{
    struct waiter *waiter = argument;
    waiter->tid = gettid();
    return waiter->run(waiter->argument);
}

static inline void pause_shortly(void)
{
    const struct timespec length = {0, 1000000};
    nanosleep(&length, NULL);
}

/* Its system call, once it is blocked in one of this kind. */
static inline struct call_target call_of_blocked(pid_t tid, enum call_kind kind)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    for (;; pause_shortly()) {
        struct registers registers;
        long number;
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        bool has_line = fgets(line, sizeof line, file) != NULL;
        fclose(file);
        if (!has_line || !watch_parse_syscall(line, &registers, &number))
            continue;
        struct call_target target = call_target_of(number, registers.call_arguments);
        if (target.kind == kind)
            return target;
    }
}

/* Starts the thread and returns the system call that it waits in. */
static inline struct call_target waiter_start(struct waiter *waiter, enum call_kind kind,
                                              void *(*run)(void *), void *argument)
{
    *waiter = (struct waiter){.run = run, .argument = argument};
    assert_int_equal(pthread_create(&waiter->thread, NULL, waiter_run, waiter), 0);
    while (!waiter->tid)
        pause_shortly();
    return call_of_blocked(waiter->tid, kind);
}

#endif
