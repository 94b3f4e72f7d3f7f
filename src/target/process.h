/* A process that is sampled: found once, and then known by its open /proc directory. */
#ifndef FGPROF_TARGET_PROCESS_H
#define FGPROF_TARGET_PROCESS_H

#include <dirent.h>
#include <stddef.h>
#include <sys/types.h>

struct process {
    pid_t pid;
    int proc_fd;   /* /proc/PID */
    DIR *task_dir; /* /proc/PID/task */
};

/* Opens process `pid` and checks that it can be sampled. Returns 0, or
 *   -ESRCH     there is none, or it is a zombie
 *   -EDEADLK   it is the calling process
 *   -ENOEXEC   it is a kernel thread, which has no program
 *   -EINVAL    it is the id of a thread, not of a process
 *   -EBUSY     another process traces it
 *   -ENOTSUP   it is a 32-bit program
 *   -EPERM     it may not be looked at
 * or another negative errno. */
int process_open(pid_t pid, struct process *ret_process);
void process_close(struct process *process);

/* Lists the ids of its threads, ascending, in *tids, which is grown as needed. Returns their count,
 * 0 once the process is gone, or -ENOMEM. */
ssize_t process_list_threads(struct process *process, pid_t **tids, size_t *capacity);

/* How many threads it has, zombies too, by the link count of its task directory, which is cheaper
 * than listing them (proc_task_getattr in the kernel's fs/proc/base.c). 0 once the process is gone.
 */
size_t process_count_threads(const struct process *process);

/* The id of a thread of it that is not a zombie, through which its memory and maps can be read: a
 * leader that has exited while others run shows neither. 0 where there is none. */
pid_t process_live_thread(struct process *process);

#endif
