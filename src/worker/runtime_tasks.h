/* The tasks of a dump that runtimes switch between: goroutines, and the tasks of asyncio. */
#ifndef FGPROF_WORKER_RUNTIME_TASKS_H
#define FGPROF_WORKER_RUNTIME_TASKS_H

#include "runtime/go/wait.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct runtime_task {
    pid_t process_id;
    uint64_t id, parent; /* parent 0: not known */
    bool is_parked;      /* its stack is a sample; else: */
    bool is_in_call;     /* a system call, or C; else it runs */
    pid_t tid;           /* of its thread, as in its PID namespace; 0: not known */
    uint64_t waits_ns;   /* for how long, about; 0: not known */
    bool is_locked;      /* to its thread */
    struct go_wait wait;
    char *creator;    /* the function that started it, and where: "main.f (/src/f.go:12)" */
    char *name;       /* of a task of asyncio; NULL: it is a goroutine */
    char *awaited_by; /* the tasks that await it, like "a", "b"; NULL: none does, or not known */
};

/* Zeroed at first. */
struct runtime_tasks {
    struct runtime_task *items;
    size_t count, capacity;
};

/* Adds a copy, whose strings belong to `tasks` from now on. Returns 0 or -ENOMEM. */
int runtime_tasks_add(struct runtime_tasks *tasks, const struct runtime_task *task);

/* Frees its strings. */
void runtime_task_clear(struct runtime_task *task);

/* By process: goroutines by id, then tasks by id. */
void runtime_tasks_sort(struct runtime_tasks *tasks);

void runtime_tasks_free(struct runtime_tasks *tasks);

#endif
