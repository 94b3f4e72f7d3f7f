/* Reads small files of /proc relative to a directory that was opened once, so that a reused process
 * id is never mistaken for the earlier process. */
#ifndef FGPROF_PROC_PROCFS_H
#define FGPROF_PROC_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads `name` below `dir_fd` into `buffer`, ends it with NUL and returns its length, or a negative
 * errno. Text that does not fit is cut off. */
ssize_t procfs_read(int dir_fd, const char *name, char *buffer, size_t buffer_bytes);

/* The fields of /proc/PID/stat that are used here. One line, such as
 *   1234 (a) name) S 1 1234 1234 0 -1 4194560 177 0 0 0 0 0 0 0 20 0 3 0 9056 ...
 * The name may contain spaces and ')', so fields are counted from the last ')' (proc(5)). */
struct proc_stat {
    char state;          /* field 3: R S D T t Z X I */
    pid_t parent;        /* field 4; 0: none in this PID namespace */
    unsigned flags;      /* field 9: the kernel's PF_* flags */
    uint64_t start_tick; /* field 22: start after boot, in ticks of sysconf(_SC_CLK_TCK) */
};

/* Whether it is a kernel thread, which has no program. */
bool proc_stat_is_kernel_thread(const struct proc_stat *stat);

/* Parses such a line. Returns false if it is not one. */
bool procfs_parse_stat(const char *line, struct proc_stat *ret_stat);

/* Reads and parses `name` (such as "stat" or "TID/stat") below `dir_fd`. Returns 0 or a negative
 * errno. */
int procfs_stat(int dir_fd, const char *name, struct proc_stat *ret_stat);

/* The same for thread `tid` below the open directory /proc/PID. */
int procfs_thread_stat(int proc_fd, pid_t tid, struct proc_stat *ret_stat);

#define THREAD_NAME_BYTES 64

/* Reads the thread's name. If it can't be read, sets "" and returns false. */
bool procfs_thread_name(int proc_fd, pid_t tid, char ret_name[THREAD_NAME_BYTES]);

/* The same for a process, by its id. */
bool procfs_process_name(pid_t pid, char ret_name[THREAD_NAME_BYTES]);

/* The number after `key` (such as "TracerPid:") in the text of /proc/PID/status, or -1. */
long procfs_status_number(const char *status, const char *key);

#endif
