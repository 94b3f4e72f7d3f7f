#include "proc/process.h"
#include "proc/procfs.h"
#include "proc/tids.h"
#include "base/array.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LISTS_MAX 8

void process_close(struct process *process)
{
    if (process->task_dir)
        closedir(process->task_dir);
    if (process->proc_fd >= 0)
        close(process->proc_fd);
    process->task_dir = NULL;
    process->proc_fd = -1;
}

/* Decides by AT_PHENT, the size of a program header, in the auxiliary vector, whose words have the
 * program's own size. Reading the executable could block on a file system that does not answer. */
static bool is_32_bit(int proc_fd)
{
    uint32_t words[1024];
    int fd = openat(proc_fd, "auxv", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? 0 : pread(fd, words, sizeof words, 0);
    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; (i + 2) * (ssize_t)sizeof *words <= bytes; i += 2) {
        if (words[i] == AT_PHENT && words[i + 1] == sizeof(Elf32_Phdr))
            return true;
    }
    return false;
}

static int check(struct process *process)
{
    char status[4096];
    struct proc_stat stat;
    int err = procfs_stat(process->proc_fd, "stat", &stat);
    if (err)
        return err;
    ssize_t length = procfs_read(process->proc_fd, "status", status, sizeof status);
    if (length < 0)
        return (int)length;
    if (proc_stat_is_kernel_thread(&stat))
        return -ENOEXEC;
    if (procfs_status_number(status, "Tgid:") != process->pid)
        return -EINVAL;
    pid_t live_tid = process_live_thread(process);
    if (!live_tid)
        return -ESRCH;
    if (procfs_status_number(status, "TracerPid:") > 0)
        return -EBUSY;
    if (is_32_bit(process->proc_fd))
        return -ENOTSUP;
    /* The same permission as ptrace's (PTRACE_MODE_ATTACH), checked without touching the target. */
    char path[32];
    snprintf(path, sizeof path, "task/%d/mem", live_tid);
    int mem_fd = openat(process->proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (mem_fd < 0)
        return errno == EACCES ? -EPERM : -errno;
    close(mem_fd);
    return 0;
}

/* Whether /proc shows the process ids that the system calls take (pid_namespaces(7)). */
static bool has_own_proc(void)
{
    char self[16], own[16];
    ssize_t length = readlink("/proc/self", self, sizeof self);
    int own_length = snprintf(own, sizeof own, "%d", getpid());
    return length == own_length && memcmp(self, own, (size_t)length) == 0;
}

int process_open(pid_t pid, struct process *ret_process)
{
    if (pid <= 0)
        return -ESRCH;
    if (pid == getpid())
        return -EDEADLK;
    if (!has_own_proc())
        return -EXDEV;
    struct process process = {.pid = pid};
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", pid);
    process.proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (process.proc_fd >= 0)
        process.task_dir = procfs_open_directory(process.proc_fd, "task");
    int err = process.task_dir ? check(&process) : -errno;
    if (!err)
        err = -clock_getcpuclockid(pid, &process.cpu_clock);
    if (err)
        process_close(&process);
    else
        *ret_process = process;
    return err == -ENOENT ? -ESRCH : err;
}

static bool is_ascending(const struct thread_list *list)
{
    for (size_t i = 1; i < list->count; i++) {
        if (list->tids[i - 1] > list->tids[i])
            return false;
    }
    return true;
}

size_t process_count_threads(const struct process *process)
{
    struct stat status;
    if (fstat(dirfd(process->task_dir), &status) || status.st_nlink < 2)
        return 0;
    return status.st_nlink - 2; /* "." and ".." */
}

/* Continues reading, or starts again if the list is complete. */
static int read_tids(struct process *process, struct thread_list *list, size_t max_count)
{
    const struct dirent *entry = NULL;
    if (!list->is_partial) {
        rewinddir(process->task_dir);
        list->count = 0;
    }
    list->is_partial = false;
    while (max_count-- && (errno = 0, entry = readdir(process->task_dir))) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid <= 0)
            continue;
        if (array_append(&list->tids, &list->count, &list->capacity, tid))
            return -ENOMEM;
    }
    if (!entry && errno)
        return -errno;
    list->is_partial = entry != NULL;
    return 0;
}

int process_list_threads(struct process *process, struct thread_list *list, size_t max_count)
{
    size_t count;
    int err, attempts = 0;
    /* The kernel ends the list early if a thread exits while it is being listed (next_tid in its
     * fs/proc/base.c). */
    do {
        count = process_count_threads(process);
        err = read_tids(process, list, max_count);
    } while (!err && !list->is_partial && list->count < count && count <= max_count &&
             ++attempts < LISTS_MAX);
    if (err)
        return err;
    /* The kernel lists them in the order of their births: mostly by their ids. */
    if (!list->is_partial && !is_ascending(list))
        array_sort(list->tids, list->count, tids_compare);
    return 0;
}

int process_list_threads_of(int proc_fd, struct thread_list *list, size_t max_count)
{
    struct process process = {.task_dir = procfs_open_directory(proc_fd, "task")};
    if (!process.task_dir)
        return -ESRCH;
    int err = process_list_threads(&process, list, max_count);
    closedir(process.task_dir);
    return err && err != -ENOMEM ? -ESRCH : err;
}

void thread_list_free(struct thread_list *list)
{
    free(list->tids);
    *list = (struct thread_list){0};
}

int process_cpu_ns(const struct process *process, uint64_t *ret_cpu_ns)
{
    struct timespec time;
    if (clock_gettime(process->cpu_clock, &time))
        return -errno;
    *ret_cpu_ns = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    return 0;
}

bool process_has_thread(const struct process *process, pid_t tid)
{
    char path[32];
    snprintf(path, sizeof path, "task/%d", tid);
    return faccessat(process->proc_fd, path, F_OK, 0) == 0;
}

/* Links can be read when no more files may be open. A thread that has exited runs no program. */
static bool has_program(const struct process *process, pid_t tid)
{
    char path[32], program;
    snprintf(path, sizeof path, "task/%d/exe", tid);
    return readlinkat(process->proc_fd, path, &program, sizeof program) > 0;
}

static bool is_live(const struct process *process, pid_t tid)
{
    struct proc_stat stat;
    int err = procfs_thread_stat(process->proc_fd, tid, &stat);
    if (err == -EMFILE || err == -ENFILE)
        return has_program(process, tid);
    return !err && !proc_stat_has_exited(&stat);
}

pid_t process_shares_memory(const struct process *process)
{
    struct proc_stat stat;
    if (procfs_stat(process->proc_fd, "stat", &stat) || !stat.parent ||
        syscall(SYS_kcmp, process->pid, stat.parent, KCMP_VM, 0, 0) != 0)
        return 0;
    return stat.parent;
}

pid_t process_live_thread(struct process *process)
{
    if (is_live(process, process->pid))
        return process->pid;
    /* With a directory stream of its own, so that a partial list of the other stays right. */
    struct thread_list list = {0};
    pid_t live = 0;
    process_list_threads_of(process->proc_fd, &list, SIZE_MAX);
    for (size_t i = 0; i < list.count && !live; i++) {
        if (is_live(process, list.tids[i]))
            live = list.tids[i];
    }
    thread_list_free(&list);
    return live;
}
