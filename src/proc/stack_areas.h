/* A process's mappings that can be read or executed. A stack is copied up to the end of its mapping
 * and no further. */
#ifndef FGPROF_PROC_STACK_AREAS_H
#define FGPROF_PROC_STACK_AREAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stack_area {
    uint64_t start, end;
    bool grows_down;   /* the main thread's stack, which may have grown since */
    bool is_only_read; /* it is of a file, and not to be written */
    bool has_code;     /* it may be executed */
    bool may_wait;     /* its pages may be of a file system that a process provides, which may not
                          answer: see memory.c */
};

struct stack_areas {
    struct stack_area *items; /* sorted by address */
    size_t count, capacity;
    int mem_fd_plus_1; /* the open /proc/PID/mem of the program that has the mappings, + 1; its
                          owner closes it. 0: none, memory is opened for each read */
};

/* Rereads the table from the maps file `maps_fd`. Returns 0 or a negative errno; on error the table
 * is empty. */
int stack_areas_read(struct stack_areas *areas, int maps_fd);

/* The mapping that holds `address`, now or after it has grown; NULL if none is known. */
const struct stack_area *stack_areas_find(const struct stack_areas *areas, uint64_t address);

/* The end of the mapping that holds `sp`, or 0 if none is known. */
uint64_t stack_areas_end(const struct stack_areas *areas, uint64_t sp);

void stack_areas_free(struct stack_areas *areas);

#endif
