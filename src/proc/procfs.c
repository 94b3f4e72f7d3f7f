#include "proc/procfs.h"
#include "base/clock.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_BYTES 8192

/* PF_KTHREAD and PF_FORKNOEXEC of the kernel's include/linux/sched.h; proc(5) shows them in field 9
 * of stat. */
#define PROCESS_FLAG_KERNEL_THREAD 0x00200000u
#define PROCESS_FLAG_ONLY_FORKED 0x00000040u

bool proc_stat_is_kernel_thread(const struct proc_stat *stat)
{
    return stat->flags & PROCESS_FLAG_KERNEL_THREAD;
}

bool proc_stat_is_only_forked(const struct proc_stat *stat)
{
    return stat->flags & PROCESS_FLAG_ONLY_FORKED;
}

bool proc_stat_has_exited(const struct proc_stat *stat)
{
    return stat->state == 'Z' || stat->state == 'X';
}

bool procfs_parse_stat(const char *line, struct proc_stat *ret_stat)
{
    const char *end_of_name = strrchr(line, ')');
    if (!end_of_name)
        return false;
    struct proc_stat stat = {0};
    unsigned long long start;
    int fields = sscanf(end_of_name + 1,
                        " %c %d %*s %*s %*s %*s %u %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                        "%*s %llu %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                        "%*s %d %*s %d",
                        &stat.state, &stat.parent, &stat.flags, &start, &stat.cpu, &stat.policy);
    if (fields != 6)
        return false;
    stat.start_tick = start;
    *ret_stat = stat;
    return true;
}

int procfs_stat(int dir_fd, const char *name, struct proc_stat *ret_stat)
{
    char line[1024];
    ssize_t length = procfs_read(dir_fd, name, line, sizeof line);
    if (length < 0)
        return (int)length;
    return procfs_parse_stat(line, ret_stat) ? 0 : -ESRCH;
}

int procfs_thread_stat(int proc_fd, pid_t tid, struct proc_stat *ret_stat)
{
    char name[48];
    snprintf(name, sizeof name, "task/%d/stat", tid);
    return procfs_stat(proc_fd, name, ret_stat);
}

bool procfs_thread_has_exited(int proc_fd, pid_t tid)
{
    struct proc_stat stat;
    int err = procfs_thread_stat(proc_fd, tid, &stat);
    return err ? err == -ENOENT || err == -ESRCH : proc_stat_has_exited(&stat);
}

static bool read_name(int dir_fd, const char *path, char ret_name[THREAD_NAME_BYTES])
{
    ssize_t length = procfs_read(dir_fd, path, ret_name, THREAD_NAME_BYTES);
    if (length <= 0)
        ret_name[length = 0] = '\0';
    if (length && ret_name[length - 1] == '\n')
        ret_name[length - 1] = '\0';
    return length > 0;
}

bool procfs_thread_name(int proc_fd, pid_t tid, char ret_name[THREAD_NAME_BYTES])
{
    char path[48];
    snprintf(path, sizeof path, "task/%d/comm", tid);
    return read_name(proc_fd, path, ret_name);
}

bool procfs_process_name(pid_t pid, char ret_name[THREAD_NAME_BYTES])
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    return read_name(AT_FDCWD, path, ret_name);
}

long procfs_status_number(const char *status, const char *key)
{
    size_t key_bytes = strlen(key);
    for (const char *line = status; line; line = strchr(line, '\n')) {
        if (*line == '\n')
            line++;
        if (strncmp(line, key, key_bytes) == 0)
            return strtol(line + key_bytes, NULL, 10);
    }
    return -1;
}

unsigned procfs_parse_namespace_ids(const char *status, pid_t ret_ids[PID_NAMESPACES_MAX])
{
    unsigned count = 0;
    long id;
    int used;
    const char *line = strstr(status, "\nNSpid:");
    if (!line)
        return 0;
    for (line += strlen("\nNSpid:");
         count < PID_NAMESPACES_MAX && sscanf(line, "%*[\t ]%ld%n", &id, &used) == 1;
         line += used) {
        if (id <= 0 || id > INT_MAX)
            return 0;
        ret_ids[count++] = (pid_t)id;
    }
    return count;
}

int procfs_namespace_ids(int dir_fd, const char *name, pid_t ret_ids[PID_NAMESPACES_MAX])
{
    char status[STATUS_BYTES];
    ssize_t bytes = procfs_read(dir_fd, name, status, sizeof status);
    return bytes > 0 ? (int)procfs_parse_namespace_ids(status, ret_ids) : -ESRCH;
}

pid_t procfs_inner_tid(int proc_fd, pid_t tid)
{
    char path[48];
    pid_t ids[PID_NAMESPACES_MAX];
    snprintf(path, sizeof path, "task/%d/status", tid);
    int count = procfs_namespace_ids(proc_fd, path, ids);
    if (count < 0)
        return 0;
    return count ? ids[count - 1] : tid; /* 0: a kernel without PID namespaces */
}

/* Pairs of words: which, and its value. There are a few dozen. */
bool procfs_is_secure(int proc_fd)
{
    uint64_t words[128];
    ssize_t bytes = procfs_read(proc_fd, "auxv", (char *)words, sizeof words);
    for (ssize_t i = 0; i + 1 < bytes / (ssize_t)sizeof *words && words[i] != AT_NULL; i += 2) {
        if (words[i] == AT_SECURE)
            return words[i + 1] != 0;
    }
    return false;
}

struct clock_offsets procfs_parse_clock_offsets(const char *text)
{
    struct clock_offsets offsets = {0};
    for (; text; text = strchr(text, '\n')) {
        char name[16];
        long long s, ns;
        text += *text == '\n';
        if (sscanf(text, "%15s %lld %lld", name, &s, &ns) != 3)
            break;
        uint64_t offset_ns = (uint64_t)s * NS_PER_S + (uint64_t)ns;
        if (strcmp(name, "monotonic") == 0)
            offsets.monotonic_ns = offset_ns;
        else if (strcmp(name, "boottime") == 0)
            offsets.boot_ns = offset_ns;
    }
    return offsets;
}

struct clock_offsets procfs_clock_offsets(void)
{
    char text[256];
    ssize_t bytes = procfs_read(AT_FDCWD, "/proc/self/timens_offsets", text, sizeof text);
    return bytes < 0 ? (struct clock_offsets){0} : procfs_parse_clock_offsets(text);
}
