/* Takes a snapshot of one thread, without waking one that sleeps.
 *
 * A thread that is blocked is read as it is: stack pointer and program counter from its `syscall`
 * file, the stack from memory. The kernel's count of how often it was given a CPU, read before and
 * after, proves that it did not move meanwhile; as long as that count stays the same at later
 * ticks, it is where it was. Where the kernel does not keep that count, the one of how often it
 * lost a CPU serves, together with the thread being seen blocked. Only a thread that is on a CPU,
 * or waits for one, is stopped by ptrace, for as long as registers and stack are copied.
 *
 * So a capture is a look, and where that finds the thread running, a stop: asked for, collected
 * once the thread has stopped, which may be after many other captures, and concluded when it runs
 * again. */
#ifndef FGPROF_OBSERVE_CAPTURE_H
#define FGPROF_OBSERVE_CAPTURE_H

#include "observe/snapshot.h"
#include "observe/stop.h"
#include "observe/watch.h"
#include "proc/thread_state.h"

enum capture_result {
    CAPTURE_DONE,
    CAPTURE_UNMOVED, /* asleep since the last snapshot, which is right still */
    CAPTURE_RUNNING, /* it has to be stopped */
    CAPTURE_PENDING, /* it has not stopped yet */
    CAPTURE_GONE,    /* it has exited, or is about to */
    CAPTURE_REFUSED, /* it may not be traced, or another process traces it; or memory is short */
};

/* Where a thread was found asleep that is stopped all the same, for want of a register. */
struct blocked {
    uint64_t pc, sp;
    enum thread_state state;
    long syscall_number;
};

/* Whose thread it is, and how to capture it. */
struct capture_request {
    pid_t process_id, tid;
    int proc_fd;                           /* /proc/PID of the process */
    const struct stack_areas *stack_areas; /* of the process */
    size_t stack_limit;                    /* how many bytes of stack to copy at the most */
    struct stack_place other_stack;        /* to be copied too */
    int keep_fds_below;                    /* see thread_file_read */
    bool wants_kernel_stack;               /* of a sleeping thread */
    uint64_t awake_ns;      /* CLOCK_MONOTONIC: the calling thread has not slept since */
    struct blocked blocked; /* of a stop; pc is 0 where it is not of a sleeping thread */
};

#define WAIT_CHANNEL_BYTES 64

/* One capture. */
struct capture {
    struct capture_request request;
    struct stop stop;
    bool has_activity;        /* false: it could not be read */
    struct activity activity; /* of a stopped one: first as it was looked at, in the end as it was
                                 when it ran again */
    long syscall_number;      /* of a blocked thread; -1: outside a call */
    enum thread_state state;  /* when the snapshot was made */
    char wait_channel[WAIT_CHANNEL_BYTES]; /* the kernel's function that it waits in, where it is
                                              uninterruptible; "": not known */
    uint64_t pause_ns;                     /* how long it was stopped, at the most; 0: not at all */
};

/* Looks at the thread, and stops nothing. CAPTURE_DONE and CAPTURE_UNMOVED for one that sleeps. */
enum capture_result capture_look(struct capture *capture, const struct capture_request *request,
                                 struct watch *watch, struct snapshot *snapshot);

/* Whether a thread that was looked at some time ago is still to be stopped: it runs; or, where it
 * is to be stopped though it sleeps, sleeps where it did. Other calls than those that survive a
 * stop must not be stopped. */
bool capture_must_stop(const struct capture_request *request, struct watch *watch);

/* Asks a thread that was looked at, with `look`, to stop. Returns CAPTURE_PENDING, or why not. */
enum capture_result capture_stop(struct capture *capture, const struct capture_request *request,
                                 const struct capture *look, struct snapshot *snapshot);

/* If it has stopped, takes the snapshot and lets it go. Does not wait. */
enum capture_result capture_collect(struct capture *capture, struct snapshot *snapshot);

/* Finds out, after CAPTURE_DONE by a stop, what the thread had been doing. `watch` is its. */
void capture_conclude(struct capture *capture, struct watch *watch,
                      const struct snapshot *snapshot);

#endif
