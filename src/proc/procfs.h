/* Reads small files of /proc relative to a directory that was opened once, so that a reused process
 * id is never mistaken for the earlier process. */
#ifndef FGPROF_PROC_PROCFS_H
#define FGPROF_PROC_PROCFS_H

#include "base/procfs_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The fields of /proc/PID/stat that are used here. One line, such as
 *   1234 (a) name) S 1 1234 1234 0 -1 4194560 177 0 0 0 0 0 0 0 20 0 3 0 9056 ...
 * The name may contain spaces and ')', so fields are counted from the last ')' (proc(5)). */
struct proc_stat {
    char state;          /* field 3: R S D T t Z X I */
    pid_t parent;        /* field 4; 0: none in this PID namespace */
    unsigned flags;      /* field 9: the kernel's PF_* flags */
    uint64_t start_tick; /* field 22: start after boot, in ticks of sysconf(_SC_CLK_TCK) */
    int cpu;             /* field 39: where it runs or ran last */
    int policy;          /* field 41: SCHED_OTHER and others of sched(7) */
};

/* Whether it is a kernel thread, which has no program. */
bool proc_stat_is_kernel_thread(const struct proc_stat *stat);

/* Whether it was forked and has not executed a program of its own yet. */
bool proc_stat_is_only_forked(const struct proc_stat *stat);

/* Whether it has exited: a zombie, or dead. */
bool proc_stat_has_exited(const struct proc_stat *stat);

/* Parses such a line. Returns false if it is not one. */
bool procfs_parse_stat(const char *line, struct proc_stat *ret_stat);

/* Reads and parses `name` (such as "stat" or "TID/stat") below `dir_fd`. Returns 0 or a negative
 * errno. */
int procfs_stat(int dir_fd, const char *name, struct proc_stat *ret_stat);

/* The same for thread `tid` below the open directory /proc/PID. */
int procfs_thread_stat(int proc_fd, pid_t tid, struct proc_stat *ret_stat);

/* Whether it has exited, or is not there at all. */
bool procfs_thread_has_exited(int proc_fd, pid_t tid);

#define THREAD_NAME_BYTES 64

/* Reads the thread's name. If it can't be read, sets "" and returns false. */
bool procfs_thread_name(int proc_fd, pid_t tid, char ret_name[THREAD_NAME_BYTES]);

/* The same for a process, by its id. */
bool procfs_process_name(pid_t pid, char ret_name[THREAD_NAME_BYTES]);

/* The thread's id in its innermost PID namespace (pid_namespaces(7)), below the open directory
 * /proc/PID. 0: not known. */
pid_t procfs_inner_tid(int proc_fd, pid_t tid);

/* Whether its program has more rights than the user who started it, because it is setuid or has
 * capabilities: AT_SECURE of /proc/PID/auxv (getauxval(3)). */
bool procfs_is_secure(int proc_fd);

/* The number after `key` (such as "TracerPid:"), with which a line of the text begins, as in
 * /proc/PID/status; -1: there is no such line. */
long procfs_status_number(const char *status, const char *key);

#define PID_NAMESPACES_MAX 33 /* MAX_PID_NS_LEVEL of the kernel's pid_namespace.h, and ours */

/* A thread's ids in all PID namespaces that see it, from ours to its own, from the line
 *   NSpid:	1234	12	5
 * of its /proc/PID/status. Returns how many; 0 if there is no such line (a kernel without PID
 * namespaces). */
unsigned procfs_parse_namespace_ids(const char *status, pid_t ret_ids[PID_NAMESPACES_MAX]);

/* The same from the file `name` (such as "task/TID/status") below `dir_fd`. -ESRCH if it can't be
 * read. */
int procfs_namespace_ids(int dir_fd, const char *name, pid_t ret_ids[PID_NAMESPACES_MAX]);

/* How far our clocks are ahead of those of the initial time namespace, which are the kernel's own,
 * modulo 2^64: time_namespaces(7). */
struct clock_offsets {
    uint64_t monotonic_ns, boot_ns;
};

/* Parses /proc/PID/timens_offsets: lines such as "monotonic -86400 0". A clock without a line is
 * not ahead. */
struct clock_offsets procfs_parse_clock_offsets(const char *text);

/* Reads those of this process. Kernels without time namespaces have no such file. */
struct clock_offsets procfs_clock_offsets(void);

#endif
