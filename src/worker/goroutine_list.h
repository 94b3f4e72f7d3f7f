/* The goroutines of a dump, and the tasks of Python programs. */
#ifndef FGPROF_WORKER_GOROUTINE_LIST_H
#define FGPROF_WORKER_GOROUTINE_LIST_H

#include "runtime/go/wait.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct listed_goroutine {
    pid_t process_id;
    uint64_t id, parent; /* parent 0: not known */
    bool is_parked;      /* its stack is a sample; else: */
    bool is_in_call;     /* a system call, or C; else it runs */
    pid_t tid;           /* of its thread, as in its PID namespace; 0: not known */
    uint64_t waits_ns;   /* for how long, about; 0: not known */
    bool is_locked;      /* to its thread */
    struct go_wait wait;
    char *creator;    /* the function that started it, and where: "main.f (/src/f.go:12)" */
    char *name;       /* of a task; NULL: it is a goroutine */
    char *awaited_by; /* the tasks that await it, like "a", "b"; NULL: none does, or not known */
};

/* Zeroed at first. */
struct goroutine_list {
    struct listed_goroutine *items;
    size_t count, capacity;
};

/* Adds a copy, whose strings are the list's from now on. Returns 0 or -ENOMEM. */
int goroutine_list_add(struct goroutine_list *list, const struct listed_goroutine *goroutine);

/* Frees its strings. */
void listed_goroutine_clear(struct listed_goroutine *goroutine);

/* By process: goroutines by id, then tasks by id. */
void goroutine_list_sort(struct goroutine_list *list);

void goroutine_list_free(struct goroutine_list *list);

#endif
