/* Takes a snapshot of one thread.
 *
 * A thread in uninterruptible sleep can't be stopped, and does not move: it is read as it is. Any
 * other is stopped by ptrace for as long as its registers and stack are copied. */
#ifndef FGPROF_CAPTURE_CAPTURE_H
#define FGPROF_CAPTURE_CAPTURE_H

#include "capture/snapshot.h"
#include "target/stop.h"

enum capture_result {
    CAPTURE_DONE,
    CAPTURE_PENDING, /* it has not stopped yet: look again with capture_collect */
    CAPTURE_GONE,    /* it has exited, or is about to */
    CAPTURE_REFUSED, /* it may not be traced, or another process traces it */
};

/* One thread's capture, which may be under way over several calls. */
struct capture {
    struct stop stop;
    char state;         /* of /proc/PID/task/TID/stat before it was asked to stop */
    size_t stack_limit; /* how many bytes of stack to copy at the most */
    uint64_t pause_ns; /* after CAPTURE_DONE: how long it was stopped, at the most; 0: not at all */
};

/* Begins with thread `tid` of process `process_id`, whose /proc directory is `proc_fd`, and waits
 * for it shortly. `capture->stack_limit` is set by the caller. */
enum capture_result capture_thread(struct capture *capture, pid_t process_id, int proc_fd,
                                   pid_t tid, struct snapshot *snapshot);

/* Goes on after CAPTURE_PENDING. */
enum capture_result capture_collect(struct capture *capture, struct snapshot *snapshot);

/* Parses a line of /proc/PID/task/TID/syscall of a blocked thread, as
 *   232 0x5 0x7ffd8c4c2d60 0x80 0xffffffff 0x0 0x8 0x7ffd8c4c2d30 0x7f6c0e5a1dd6
 * the number, six arguments, stack pointer and program counter, or "-1 SP PC" for one blocked
 * outside a call. Returns false for "running" and anything else. */
bool capture_parse_syscall(const char *line, struct registers *ret_registers);

#endif
