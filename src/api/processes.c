/* The functions of fgprof.h for processes and their names. */
#include "fgprof.h"
#include "proc/find.h"
#include "proc/procfs.h"

#include <errno.h>
#include <stdio.h>

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
