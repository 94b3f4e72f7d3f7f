/* A process that is sampled: found once, then known by its open /proc directory. */
#ifndef FGPROF_PROC_PROCESS_H
#define FGPROF_PROC_PROCESS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct process {
    pid_t pid;
    int proc_fd;         /* /proc/PID */
    DIR *task_dir;       /* /proc/PID/task */
    clockid_t cpu_clock; /* counts the CPU time of all its threads */
};

/* Opens process `pid` and checks that it can be sampled. Returns 0, or
 *   -ESRCH     it does not exist, or is a zombie
 *   -EDEADLK   it is the calling process
 *   -ENOEXEC   it is a kernel thread, which has no program
 *   -EINVAL    it is the id of a thread, not of a process
 *   -EBUSY     another process traces it
 *   -ENOTSUP   it is a 32-bit program
 *   -EPERM     we may not look at it
 *   -EXDEV     /proc belongs to another PID namespace
 * or another negative errno. */
int process_open(pid_t pid, struct process *ret_process);
void process_close(struct process *process);

/* The ids of a process's threads. Starts zeroed. */
struct thread_list {
    pid_t *tids; /* ascending, once the list is complete */
    size_t count, capacity;
    bool is_partial; /* there are more threads */
};

/* Lists at most `max_count` threads, starting with the first or, if the list is partial, where it
 * ended. Returns 0, -ENOMEM, or another negative errno if the directory can't be read; the list
 * must not be used then. If the process is gone, the list is empty. */
int process_list_threads(struct process *process, struct thread_list *list, size_t max_count);

/* The same for the process whose /proc directory is `proc_fd`, for all threads at once, into an
 * empty list. Returns 0, -ENOMEM, or -ESRCH if its threads can't be listed. */
int process_list_threads_of(int proc_fd, struct thread_list *list, size_t max_count);

void thread_list_free(struct thread_list *list);

/* How many threads it has, including zombies, from the link count of its task directory, which is
 * cheaper than listing them (proc_task_getattr in the kernel's fs/proc/base.c). 0 once the process
 * is gone. */
size_t process_count_threads(const struct process *process);

/* The parent, if the process shares its parent's memory, as a child of vfork(2) does until it
 * executes a program. 0 if it has its own memory, or if that is unknown (no CONFIG_KCMP). */
pid_t process_shares_memory(const struct process *process);

/* The CPU time of all its threads since it began, including exited ones. Time is added when a
 * thread leaves its CPU, or at the scheduler's next tick (thread_group_cputime in the kernel's
 * kernel/sched/cputime.c). Returns 0 or a negative errno. */
int process_cpu_ns(const struct process *process, uint64_t *ret_cpu_ns);

bool process_has_thread(const struct process *process, pid_t tid);

/* The id of one of its threads that is not a zombie, for reading its memory and maps: a leader that
 * has exited while others run shows neither. 0 if there is none. */
pid_t process_live_thread(struct process *process);

#endif
