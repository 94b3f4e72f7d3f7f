/* One program that a process runs: from one execve(2) to the next, or to the process's end.
 *
 * Its memory and its maps stay open, so an observation of a thread is never read with the maps of
 * another program. The sampling thread opens it. Each observation holds a reference, and so does
 * everything that keeps tables for it. */
#ifndef FGPROF_PROC_PROGRAM_H
#define FGPROF_PROC_PROGRAM_H

#include "proc/process.h"

#include <stdatomic.h>
#include <stdint.h>

struct program {
    atomic_uint references;
    uint32_t number;  /* unique in the recording, from 0 */
    uint32_t process; /* the number of its process in the recording */
    pid_t process_id;
    pid_t tid;   /* a thread that was alive when it was opened */
    int proc_fd; /* /proc/PID, its own descriptor */
    int mem_fd;  /* reads as empty once the process executes another program */
    int maps_fd;
    int first_maps_fd; /* what its maps said when it was opened, kept; -1: too much, or failed */
    atomic_int *kept_maps_fds; /* the same of later moments: see program_keep_maps; NULL: none */
    bool is_in_parents_memory; /* which outlives the program; see process_shares_memory */
};

/* Opens the program that `process` runs now, with one reference. Returns 0; -ESRCH if the process
 * has no live thread; or another negative errno. */
int program_open(struct process *process, uint32_t number, uint32_t process_number,
                 struct program **ret_program);

/* Whether the process still runs it. */
bool program_is_current(const struct program *program);

/* Keeps a copy of its current maps, for when it ends before another thread could read them: when it
 * was opened, its libraries may not have been mapped yet. This is done a few times; then the last
 * copy stays. */
void program_keep_maps(const struct program *program);

/* The latest maps that were kept; -1: none. */
int program_kept_maps_fd(const struct program *program);

/* Adds a reference. Returns `program`. */
struct program *program_hold(struct program *program);

/* Drops a reference; dropping the last one closes the program. Any thread may call it. Accepts
 * NULL. */
void program_release(struct program *program);

/* When the process runs the program that is known; CLOCK_MONOTONIC. */
struct program_span {
    uint64_t opened_ns;
    /* It still ran after that: an execve(2) reported before was its own, though it may have been
     * reported after the program was opened. */
    uint64_t current_ns;
    bool has_before; /* it ran another one before, while it was sampled */
};

/* Which of a process's programs something is of that the kernel reports late. */
enum program_match {
    PROGRAM_CURRENT, /* the one that is known */
    PROGRAM_LATER,   /* one that is not known yet */
    PROGRAM_NONE,    /* one that has ended, or none */
};

/* Which program a stack of `at_ns` is of. `exec_ns`: when the process was last reported to execute
 * one; 0: never. */
enum program_match program_span_match(const struct program_span *span, uint64_t exec_ns,
                                      uint64_t at_ns);

#endif
