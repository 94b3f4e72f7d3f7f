#include "cli/pgrep.h"
#include "fgprof.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 15 /* the kernel's TASK_COMM_LEN, less the NUL */

static void complain_regex(const char *pattern)
{
    regex_t expression;
    char why[128];
    int wrong = regcomp(&expression, pattern, REG_EXTENDED | REG_NOSUB);
    if (!wrong) {
        regfree(&expression);
        return;
    }
    regerror(wrong, &expression, why, sizeof why);
    fprintf(stderr, "fgprof-c: bad name '%s': %s\n", pattern, why);
}

bool pgrep(const char *pattern, pid_t **ret_pids, size_t *ret_count)
{
    int err = fgprof_find_processes(pattern, ret_pids, ret_count);
    if (err == -EINVAL)
        complain_regex(pattern);
    else if (err)
        fprintf(stderr, "fgprof-c: processes can't be listed: %s\n", strerror(-err));
    else if (!*ret_count)
        fprintf(stderr, "fgprof-c: no process's name matches '%s'%s\n", pattern,
                strlen(pattern) > NAME_MAX_BYTES ? ": names have at most 15 characters" : "");
    return !err && *ret_count;
}
