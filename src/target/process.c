#include "target/process.h"
#include "target/procfs.h"
#include "base/array.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* PF_KTHREAD of the kernel's include/linux/sched.h; proc(5) shows it in field 9 of stat. */
#define PROCESS_FLAG_KERNEL_THREAD 0x00200000u

void process_close(struct process *process)
{
    if (process->task_dir)
        closedir(process->task_dir);
    if (process->proc_fd >= 0)
        close(process->proc_fd);
    process->task_dir = NULL;
    process->proc_fd = -1;
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
    if (stat.flags & PROCESS_FLAG_KERNEL_THREAD)
        return -ENOEXEC;
    if (procfs_status_number(status, "Tgid:") != process->pid)
        return -EINVAL;
    pid_t live_tid = process_live_thread(process);
    if (!live_tid)
        return -ESRCH;
    if (procfs_status_number(status, "TracerPid:") > 0)
        return -EBUSY;
    unsigned char ident[EI_NIDENT] = {0};
    int exe_fd = openat(process->proc_fd, "exe", O_RDONLY | O_CLOEXEC);
    if (exe_fd >= 0 && pread(exe_fd, ident, sizeof ident, 0) == (ssize_t)sizeof ident &&
        ident[EI_CLASS] == ELFCLASS32)
        err = -ENOTSUP;
    if (exe_fd >= 0)
        close(exe_fd);
    if (err)
        return err;
    /* The same permission as ptrace's (PTRACE_MODE_ATTACH), asked without touching the target. */
    char path[32];
    snprintf(path, sizeof path, "task/%d/mem", live_tid);
    int mem_fd = openat(process->proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (mem_fd < 0)
        return errno == EACCES ? -EPERM : -errno;
    close(mem_fd);
    return 0;
}

int process_open(pid_t pid, struct process *ret_process)
{
    if (pid <= 0)
        return -ESRCH;
    if (pid == getpid())
        return -EDEADLK;
    struct process process = {.pid = pid, .proc_fd = -1};
    char path[32];
    int err = 0;
    snprintf(path, sizeof path, "/proc/%d", pid);
    process.proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (process.proc_fd < 0) {
        err = errno == ENOENT ? -ESRCH : -errno;
        goto out;
    }
    int task_fd = openat(process.proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (task_fd < 0) {
        err = errno == ENOENT ? -ESRCH : -errno;
        goto out;
    }
    process.task_dir = fdopendir(task_fd);
    if (!process.task_dir) {
        err = -errno;
        close(task_fd);
        goto out;
    }
    err = check(&process);
out:
    if (err)
        process_close(&process);
    else
        *ret_process = process;
    return err == -ENOENT ? -ESRCH : err;
}

static int compare_tids(const void *a, const void *b)
{
    pid_t left = *(const pid_t *)a, right = *(const pid_t *)b;
    return (left > right) - (left < right);
}

ssize_t process_list_threads(struct process *process, pid_t **tids, size_t *capacity)
{
    size_t count = 0;
    const struct dirent *entry;
    rewinddir(process->task_dir);
    while ((entry = readdir(process->task_dir))) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid <= 0)
            continue;
        if (array_reserve((void **)tids, capacity, count + 1, sizeof **tids))
            return -ENOMEM;
        (*tids)[count++] = tid;
    }
    if (count)
        qsort(*tids, count, sizeof **tids, compare_tids);
    return (ssize_t)count;
}

size_t process_count_threads(const struct process *process)
{
    struct stat status;
    if (fstat(dirfd(process->task_dir), &status) || status.st_nlink < 2)
        return 0;
    return status.st_nlink - 2; /* "." and ".." */
}

pid_t process_live_thread(struct process *process)
{
    pid_t *tids = NULL;
    size_t capacity = 0;
    pid_t live = 0;
    ssize_t count = process_list_threads(process, &tids, &capacity);
    for (ssize_t i = 0; i < count && !live; i++) {
        struct proc_stat stat;
        if (procfs_thread_stat(process->proc_fd, tids[i], &stat) == 0 && stat.state != 'Z' &&
            stat.state != 'X')
            live = tids[i];
    }
    free(tids);
    return live;
}
