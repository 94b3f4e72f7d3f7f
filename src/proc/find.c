#include "proc/find.h"
#include "proc/procfs.h"
#include "base/array.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_wanted(pid_t pid, const regex_t *expression)
{
    char path[32], name[THREAD_NAME_BYTES];
    struct proc_stat stat;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    return !procfs_stat(AT_FDCWD, path, &stat) && !proc_stat_is_kernel_thread(&stat) &&
           !proc_stat_has_exited(&stat) && procfs_process_name(pid, name) &&
           regexec(expression, name, 0, NULL, 0) == 0;
}

int processes_find(const regex_t *expression, pid_t **ret_pids, size_t *ret_count)
{
    pid_t *pids = NULL;
    size_t count = 0, capacity = 0;
    const struct dirent *entry;
    int err = 0;
    DIR *proc = opendir("/proc");
    if (!proc)
        return -errno;
    while (!err && (entry = readdir(proc))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid <= 0 || pid == getpid() || !is_wanted(pid, expression))
            continue;
        err = array_reserve(&pids, &capacity, count + 1);
        if (!err)
            pids[count++] = pid;
    }
    closedir(proc);
    if (err) {
        free(pids);
        return err;
    }
    *ret_pids = pids;
    *ret_count = count;
    return 0;
}
