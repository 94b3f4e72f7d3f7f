/* The files of /proc about one thread, kept open from tick to tick, and the results of the last
 * look at them. */
#ifndef FGPROF_OBSERVE_WATCH_H
#define FGPROF_OBSERVE_WATCH_H

#include "observe/registers.h"
#include "proc/activity.h"
#include "proc/thread_file.h"

struct watched_call {
    uint64_t sp, pc;
    long number; /* -1: none */
};

/* Starts zeroed. */
struct watch {
    struct thread_file schedstat;
    struct thread_file syscall, stat; /* kept open from its second snapshot on: a thread that never
                                         moves is read once, which is not worth a descriptor */
    struct thread_file sched;         /* of a thread that is stopped */
    struct thread_file status;        /* kept open only if schedstat does not count */
    uint64_t preemptions_read_ns;     /* CLOCK_MONOTONIC; 0: they were not read */
    bool is_asleep;                   /* the last snapshot found it asleep, with `switches` */
    uint64_t switches;
    /* record_source.c: the last snapshot was of its time off the CPU since departed_ns; 0: it was
     * not. `activity`: the kernel's account then, which stays the same until it returns. */
    uint64_t departed_ns;
    bool has_activity;
    struct activity activity;
    struct watched_call call; /* in which it was last found */
    bool was_read;            /* its syscall file was read before */
    uint64_t thread_pointer;  /* 0: not known */
};

/* The watches of all threads, by thread number. Starts zeroed, except for keep_fds_below. */
struct watches {
    struct watch *items;
    size_t count, capacity;
    int keep_fds_below; /* see thread_file_read */
};

/* The watch of a thread, at first without open files; valid until the next call. NULL if memory is
 * short. */
struct watch *watches_get(struct watches *watches, uint32_t thread);
/* The thread is gone: another one may get its number. */
void watches_forget(struct watches *watches, uint32_t thread);
void watches_free(struct watches *watches);

/* The thread to which the files belong. */
struct watch_place {
    int proc_fd; /* /proc/PID of the process */
    pid_t tid;
    int keep_fds_below; /* see thread_file_read */
};

/* Reads one of the files. */
ssize_t watch_read(const struct watch_place *place, struct thread_file *file, const char *name,
                   char *buffer, size_t buffer_bytes);

/* Reads schedstat or, if the kernel does not count there, status. Returns 0, -ESRCH if the thread
 * is gone, or another negative errno, on which nothing is known of the thread. */
int watch_read_activity(const struct watch_place *place, struct watch *watch,
                        struct activity *ret_activity);

/* Reads when the thread last ran, from sched. Returns whether that is known. */
bool watch_read_last_run(const struct watch_place *place, struct watch *watch,
                         struct last_run *ret_last_run);

/* Reads how often the thread was preempted, from status, which costs about five times as much as
 * schedstat. Returns whether that is known. */
bool watch_read_preemptions(const struct watch_place *place, struct watch *watch,
                            uint64_t *ret_preemptions);

/* Reads where the thread is blocked. Returns 0; -EAGAIN if it is on a CPU or waiting for one
 * (task_current_syscall in the kernel's lib/syscall.c); -ESRCH if it is gone; or another negative
 * errno, on which nothing is known of the thread. */
int watch_read_blocked(const struct watch_place *place, struct watch *watch,
                       struct registers *ret_registers, long *ret_syscall_number);

/* Parses a line of /proc/PID/task/TID/syscall of a blocked thread, such as
 *   232 0x5 0x7ffd8c4c2d60 0x80 0xffffffff 0x0 0x8 0x7ffd8c4c2d30 0x7f6c0e5a1dd6
 * with the number, six arguments, stack pointer and program counter, or "-1 SP PC" for a thread
 * that is blocked outside a call. Returns false for "running" and anything else. */
bool watch_parse_syscall(const char *line, struct registers *ret_registers,
                         long *ret_syscall_number);

void watch_close(struct watch *watch);

#endif
