/* Which thread created which, as reported by the kernel (perf_event_open(2)).
 *
 * There are two events for each CPU. One reports births, names and ends of threads: short records,
 * so that hardly any are lost. The other samples a thread that creates another one, at the kernel's
 * tracepoint task:task_newtask: its registers and the top of its stack. Both see all processes as
 * soon as they are born, and cost nothing except when a thread is created, named, or exits.
 *
 * The records of all CPUs are sorted by time. A birth's record is written before its sample, by the
 * same thread, so a sample belongs to the last birth before it by its thread. */
#ifndef FGPROF_OBJECTS_BIRTHS_H
#define FGPROF_OBJECTS_BIRTHS_H

#include "observe/snapshot_pool.h"

#include <sys/types.h>

#define BIRTHS_STACK_BYTES (16u << 10) /* the most stack in a sample */
#define BIRTHS_NAME_BYTES 16           /* TASK_COMM_LEN in the kernel's linux/sched.h */

enum birth_change {
    BIRTH_MADE,  /* a thread; if its maker is in another process, it is a process's first one */
    BIRTH_NAMED, /* it has a new name */
    BIRTH_ENDED,
};

struct birth {
    enum birth_change change;
    pid_t process_id, tid;
    uint64_t at_ns; /* CLOCK_MONOTONIC */
    /* BIRTH_MADE: */
    pid_t maker_process_id, maker_tid;
    bool has_stack; /* see births_copy_stack */
    /* BIRTH_NAMED: */
    char name[BIRTHS_NAME_BYTES];
};

struct births;

/* Opens the events. `has_children`: children of followed processes are also followed. If births can
 * be seen but not stacks, *ret_stack_refusal says why, as a negative errno; else it is 0. Returns
 * 0, -EACCES or -EPERM if that is not permitted, or another negative errno. */
int births_new(bool has_children, struct births **ret_births, int *ret_stack_refusal);
/* Accepts NULL. */
void births_free(struct births *births);

/* Start or stop reporting threads of this process. Returns 0 or -ENOMEM. */
int births_follow(struct births *births, pid_t process_id);
void births_unfollow(struct births *births, pid_t process_id);

/* When the process last executed a program, by the records read so far; 0: never. */
uint64_t births_exec_ns(const struct births *births, pid_t process_id);

/* Reads the kernel's records. Very new records are held back, because older ones may still come.
 * Returns 0 or -ENOMEM. */
int births_read(struct births *births);

/* The next record of a followed process; NULL if there is none, or it is held back, or its stack
 * may come with the next births_read. Valid until births_skip. */
const struct birth *births_next(struct births *births);
void births_skip(struct births *births);

/* Copies the stack of the thread that created the next one: the snapshot must have room for
 * BIRTHS_STACK_BYTES. Returns false if it did not run 64-bit code. */
bool births_copy_stack(const struct births *births, struct snapshot *snapshot);

/* All records before this time have been taken. */
uint64_t births_taken_ns(const struct births *births);

/* Whether the end of this thread was read and not taken yet. */
bool births_has_end(const struct births *births, pid_t tid);

/* How many records were lost because they were not read in time: births, ends and names, of all
 * processes. */
uint64_t births_lost(const struct births *births);

#endif
