/* What threads were seen to wait for, and who owned it.
 *
 * A row is one resource in the hands of one thread at one place of its code. The samples of its
 * waiters refer to the row, so their time is the time that the owner spent there. Each distinct row
 * occurs once. A program may have any number of locks, so rows are limited: once half of them are
 * used, owners have no stack, and once all are used, all further locks of a process become one, as
 * do its further files and so on, with no known owner. */
#ifndef FGPROF_COUNT_WAITS_H
#define FGPROF_COUNT_WAITS_H

#include "base/index.h"
#include "base/renumber.h"

#define WAITS_MAX 65536u
#define WAITS_OTHER_MAX 1024u /* further rows, for what stands for others */
#define WAIT_NO_OWNER UINT32_MAX
#define WAIT_NO_STACK UINT32_MAX

/* What ended a wait. */
enum waker_kind {
    WAKER_UNKNOWN,
    WAKER_THREAD,        /* of a process that is sampled */
    WAKER_OTHER_THREAD,  /* of another process, which `waker_name` names */
    WAKER_KERNEL_THREAD, /* works for others: it is not blamed */
    WAKER_TIMER,
    WAKER_NETWORK,
    WAKER_DISK,
    WAKER_INTERRUPT, /* none of these, or it is not known which */
    WAKER_KIND_COUNT,
};

/* Without padding, so that rows can be compared as bytes. */
struct counted_wait {
    uint64_t key;           /* which resource of its kind: the address of a lock; otherwise its
                               name, a number in the recording's strings; 0: it stands for others */
    uint64_t vtable;        /* what the object that contains the lock points at: the vtable of its
                               class, if symbols say so; 0: nothing */
    uint32_t kind;          /* enum resource_kind */
    uint32_t space;         /* the address space, if `key` is an address */
    uint32_t process;       /* in stack_table.processes: the process that has it */
    uint32_t owner_process; /* in stack_table.processes, or WAIT_NO_OWNER */
    uint32_t owner_name;    /* the thread's, in the recording's strings; "": not known */
    uint32_t owner_tid;     /* 0: threads are not distinguished */
    uint32_t owner_stack;   /* in stack_table.stacks: where it was then; or WAIT_NO_STACK */
    uint32_t owner_wait_plus_1; /* the row of what the owner itself waited for then; 0: it did not
                                   wait, or for something unknown */
    uint32_t waker_kind;        /* enum waker_kind */
    uint32_t waker_process_plus_1; /* in stack_table.processes; 0: it is not sampled */
    uint32_t waker_name;           /* the thread's, in the recording's strings */
    uint32_t waker_tid;            /* 0: threads are not distinguished */
    uint32_t waker_stack_plus_1; /* in stack_table.stacks: where it ended the wait; 0: not known */
    uint32_t waker_kernel_stack; /* the kernel functions that ended it, as from kernel_names_intern;
                                    "": not wanted */
};

/* A wait of which nothing is known. */
static inline struct counted_wait wait_of_nothing(uint32_t process)
{
    return (struct counted_wait){
        .process = process, .owner_process = WAIT_NO_OWNER, .owner_stack = WAIT_NO_STACK};
}

struct waits {
    struct counted_wait *rows;
    size_t count, capacity;
    struct index index;
    uint64_t limited; /* how often a row was found that stands for others */
};

/* Finds the row or adds it: *ret_wait_plus_1 is 0 if there are too many. Returns 0 or -ENOMEM. */
int waits_add(struct waits *waits, const struct counted_wait *wait, uint32_t *ret_wait_plus_1);

/* A row that stays keeps the rows that it leads to, which all come before it. */
void waits_keep_chains(const struct waits *waits, struct renumber *rows);

/* Keeps only these rows, which get new numbers, as do the stacks of owners. */
void waits_keep(struct waits *waits, const struct renumber *rows, const struct renumber *stacks);

void waits_free(struct waits *waits);

#endif
