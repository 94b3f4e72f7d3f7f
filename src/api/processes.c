/* The functions of fgprof.h for processes and their names. */
#include "fgprof.h"
#include "objects/values.h"
#include "proc/procfs.h"
#include "base/starter.h"
#include "base/array.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static bool is_wanted(pid_t pid, const regex_t *expression)
{
    char path[32], name[THREAD_NAME_BYTES];
    struct proc_stat stat;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    return !procfs_stat(AT_FDCWD, path, &stat) && !proc_stat_is_kernel_thread(&stat) &&
           !proc_stat_has_exited(&stat) && procfs_process_name(pid, name) &&
           !is_helper_name(name) && regexec(expression, name, 0, NULL, 0) == 0;
}

/* Lists the processes whose name matches the expression, except the calling process, profilers'
 * helper processes, kernel threads and zombies. The caller frees *ret_pids. Returns 0 or a negative
 * errno. */
static int processes_find(const regex_t *expression, pid_t **ret_pids, size_t *ret_count)
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
        err = array_append(&pids, &count, &capacity, pid);
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

int fgprof_find_processes(const char *regex, pid_t **ret_pids, size_t *ret_count)
{
    regex_t expression;
    int wrong = regcomp(&expression, regex, REG_EXTENDED | REG_NOSUB);
    if (wrong)
        return wrong == REG_ESPACE ? -ENOMEM : -EINVAL;
    int err = processes_find(&expression, ret_pids, ret_count);
    regfree(&expression);
    return err;
}

bool fgprof_process_name(pid_t pid, char *buffer, size_t buffer_bytes)
{
    char name[THREAD_NAME_BYTES];
    bool is_known = procfs_process_name(pid, name);
    snprintf(buffer, buffer_bytes, "%s", name);
    return is_known;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct values_listed *)a)->name, ((const struct values_listed *)b)->name);
}

static int list_of_program(const struct program *program, fgprof_custom_listed_fn *function,
                           void *context)
{
    struct values_memory memory;
    struct values_listed *listed;
    size_t count;
    int err = values_find(program->maps_fd, program->mem_fd, &memory);
    if (!err)
        err = values_list(&memory, &listed, &count);
    if (err)
        return err;
    array_sort(listed, count, by_name);
    for (size_t i = 0; i < count; i++)
        function(listed[i].name, listed[i].count, context);
    free(listed);
    return 0;
}

int fgprof_list_custom(pid_t pid, fgprof_custom_listed_fn *function, void *context)
{
    struct process process;
    struct program *program;
    int err = process_open(pid, &process);
    if (err)
        return err;
    err = program_open(&process, 0, 0, &program);
    if (!err) {
        err = list_of_program(program, function, context);
        program_release(program);
    }
    process_close(&process);
    return err;
}
