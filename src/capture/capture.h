/* Takes a snapshot of one thread, without waking one that sleeps.
 *
 * A thread that is blocked is read as it is: stack pointer and program counter from its `syscall`
 * file, the stack from memory. The kernel's count of how often it was given a CPU, read before and
 * after, proves that it did not move meanwhile; as long as that count stays the same at later
 * ticks, it is where it was. Where the kernel does not keep that count, the one of how often it
 * lost a CPU serves, together with the thread being seen blocked. Only a thread that is on a CPU,
 * or waits for one, is stopped by ptrace, for as long as registers and stack are copied. */
#ifndef FGPROF_CAPTURE_CAPTURE_H
#define FGPROF_CAPTURE_CAPTURE_H

#include "capture/snapshot.h"
#include "capture/thread_state.h"
#include "target/stack_areas.h"
#include "target/stop.h"
#include "target/thread_file.h"

enum capture_result {
    CAPTURE_DONE,
    CAPTURE_UNMOVED, /* asleep since the last snapshot, which is right still */
    CAPTURE_RUNNING, /* it would have to be stopped, and may_stop is false */
    CAPTURE_PENDING, /* it has not stopped yet: look again with capture_collect */
    CAPTURE_GONE,    /* it has exited, or is about to */
    CAPTURE_REFUSED, /* it may not be traced, or another process traces it */
};

/* When a thread was looked at without a stop, and how it stood with its waits for a CPU then. */
struct look {
    bool is_known;
    uint64_t awake_ns;   /* request.awake_ns */
    uint64_t waiting_ns; /* of struct activity */
};

/* What is kept of one thread from tick to tick. Zeroed at first. */
struct watch {
    struct thread_file schedstat, syscall;
    struct thread_file stat;   /* from the second snapshot of it asleep on */
    struct thread_file status; /* only where schedstat does not count */
    bool is_asleep;            /* the last snapshot was of it sleeping, with this count: */
    uint64_t switches;
    bool was_asleep; /* in some snapshot: the next may need its stat again */
    struct look look;
};

void watch_close(struct watch *watch);

/* Whose thread it is, and how to capture it. */
struct capture_request {
    pid_t process_id, tid;
    int proc_fd;                           /* /proc/PID of the process */
    const struct stack_areas *stack_areas; /* of the process */
    size_t stack_limit;                    /* how many bytes of stack to copy at the most */
    int keep_fds_below;                    /* see thread_file_read */
    bool may_stop;                         /* where it runs */
    bool must_stop;                        /* also where it sleeps: all its registers are needed */
    uint64_t awake_ns; /* CLOCK_MONOTONIC: the calling thread has not slept since */
};

#define WAIT_CHANNEL_BYTES 64

/* One capture, which may be under way over several calls. */
struct capture {
    struct capture_request request;
    struct stop stop;
    long syscall_number; /* of a blocked thread; -1: outside a call */
    bool was_running;    /* on a CPU or waiting for one, and so stopped */
    struct look look;    /* the last one before the stop */
    /* After CAPTURE_DONE: */
    uint64_t pause_ns;                     /* how long it was stopped, at the most; 0: not at all */
    enum thread_state state;               /* when the snapshot was made */
    char wait_channel[WAIT_CHANNEL_BYTES]; /* the kernel's function that it waits in, where it is
                                              uninterruptible; "": not known */
};

/* Begins, and waits shortly where it has to stop the thread. */
enum capture_result capture_thread(struct capture *capture, const struct capture_request *request,
                                   struct watch *watch, struct snapshot *snapshot);

/* Goes on after CAPTURE_PENDING. */
enum capture_result capture_collect(struct capture *capture, struct snapshot *snapshot);

/* Parses a line of /proc/PID/task/TID/syscall of a blocked thread, as
 *   232 0x5 0x7ffd8c4c2d60 0x80 0xffffffff 0x0 0x8 0x7ffd8c4c2d30 0x7f6c0e5a1dd6
 * the number, six arguments, stack pointer and program counter, or "-1 SP PC" for one blocked
 * outside a call. Returns false for "running" and anything else. */
bool capture_parse_syscall(const char *line, struct registers *ret_registers,
                           long *ret_syscall_number);

#endif
