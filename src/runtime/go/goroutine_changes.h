/* What is new of a program's goroutines: the value that the sampling thread makes, and from which
 * the worker counts them. A goroutine that stays parked where it was is not in it. */
#ifndef FGPROF_RUNTIME_GO_GOROUTINE_CHANGES_H
#define FGPROF_RUNTIME_GO_GOROUTINE_CHANGES_H

#include "runtime/go/wait.h"

#include <sys/types.h>

struct goroutine_seen {
    uint32_t number;           /* its place in allgs, which another one may have had before */
    bool is_parked;            /* with this stack; else it is on a thread, has moved, or is gone: */
    bool has_moved;            /* while its stack was read */
    uint64_t before_ns, at_ns; /* when it was last read before, and now (CLOCK_MONOTONIC) */
    uint64_t address;          /* of struct g */
    struct goroutine goroutine;
    struct go_wait wait;
    size_t stack_at, stack_bytes; /* of its stack, from the stack pointer on, in `stacks` */
    size_t label_at, label_bytes; /* there too: its labels, as from go_labels_read */
};

/* Zeroed at first. */
struct goroutine_changes {
    struct goroutine_seen *items;
    size_t count, capacity;
    unsigned char *stacks;
    size_t stack_bytes, stack_capacity;
    uint64_t seen_ns;    /* all goroutines, except new ones, have been read since then; 0: not all
                            were */
    uint64_t left_out;   /* goroutines beyond GOROUTINES_MAX */
    uint64_t unreadable; /* if seen_ns is set: of these, or they made no sense */
};

#define GOROUTINES_MAX 1000000u
#define GOROUTINE_CHANGES_STACK_BYTES (1u << 20)

/* Adds one with room for its stack, for which there is no more than GOROUTINE_CHANGES_STACK_BYTES
 * in all. Returns 0, -ENOMEM, or -ENOSPC. */
int goroutine_changes_add(struct goroutine_changes *changes, const struct goroutine_seen *seen,
                          unsigned char **ret_stack);

/* Gives the last one labels. Returns 0 or -ENOMEM. */
int goroutine_changes_label(struct goroutine_changes *changes, const char *labels, size_t bytes);

/* Frees it and what it holds. Takes NULL. */
void goroutine_changes_free(struct goroutine_changes *changes);

#endif
