#include "cli/pgrep.h"

#include <dirent.h>
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* PF_KTHREAD of the kernel's include/linux/sched.h; proc(5) shows it in field 9 of stat. */
#define PROCESS_FLAG_KERNEL_THREAD 0x00200000u
#define NAME_MAX_BYTES 15 /* of a process's name: TASK_COMM_LEN of the kernel, less its NUL */

/* Whether process `pid` is one that can be chosen, by its stat, as
 *   1234 (name) S 1 1234 1234 0 -1 4194560 ...
 * and its name. */
static bool read_process(pid_t pid, char *name, size_t name_bytes)
{
    char path[32], line[512], state;
    unsigned flags;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    char *begin = strchr(line, '('), *end = strrchr(line, ')');
    if (!begin || !end || end < begin ||
        sscanf(end + 1, " %c %*s %*s %*s %*s %*s %u", &state, &flags) != 2)
        return false;
    *end = '\0';
    snprintf(name, name_bytes, "%s", begin + 1);
    return state != 'Z' && state != 'X' && !(flags & PROCESS_FLAG_KERNEL_THREAD);
}

/* Returns 0 or a negative errno. */
static int add_matching(const regex_t *expression, pid_t **pids, size_t *pid_count)
{
    const struct dirent *entry;
    int err = 0;
    DIR *proc = opendir("/proc");
    if (!proc)
        return -errno;
    while (!err && (entry = readdir(proc))) {
        char name[64];
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid <= 0 || pid == getpid() || !read_process(pid, name, sizeof name) ||
            regexec(expression, name, 0, NULL, 0) != 0)
            continue;
        pid_t *grown = reallocarray(*pids, *pid_count + 1, sizeof *grown);
        if (grown) {
            *pids = grown;
            grown[(*pid_count)++] = pid;
        } else {
            err = -ENOMEM;
        }
    }
    closedir(proc);
    return err;
}

bool pgrep(const char *pattern, pid_t **pids, size_t *pid_count)
{
    regex_t expression;
    char why[128];
    size_t count_before = *pid_count;
    int wrong = regcomp(&expression, pattern, REG_EXTENDED | REG_NOSUB);
    if (wrong) {
        regerror(wrong, &expression, why, sizeof why);
        fprintf(stderr, "fgprof-c: bad name '%s': %s\n", pattern, why);
        return false;
    }
    int err = add_matching(&expression, pids, pid_count);
    regfree(&expression);
    if (err)
        fprintf(stderr, "fgprof-c: processes can't be listed: %s\n", strerror(-err));
    else if (*pid_count == count_before)
        fprintf(stderr, "fgprof-c: no process's name matches '%s'%s\n", pattern,
                strlen(pattern) > NAME_MAX_BYTES ? ": names have 15 characters at the most" : "");
    return !err && *pid_count > count_before;
}
