#include "values.h"
#include "duration.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool complain(const char *what, const char *value, const char *wanted)
{
    fprintf(stderr, "fgprof-c: bad %s '%s': %s\n", what, value, wanted);
    return false;
}

bool pids_parse(const char *list, pid_t **pids, size_t *pid_count)
{
    char *copy = strdup(list), *rest = copy, *word;
    bool ok = copy != NULL;
    while (ok && (word = strsep(&rest, ","))) {
        uint64_t pid;
        ok = number_parse(word, 1, INT_MAX, &pid);
        if (!ok) {
            complain("process id", word, "give a number, or several as 12,34");
            break;
        }
        pid_t *grown = reallocarray(*pids, *pid_count + 1, sizeof *grown);
        ok = grown != NULL;
        if (ok) {
            *pids = grown;
            (*pids)[(*pid_count)++] = (pid_t)pid;
        }
    }
    free(copy);
    return ok;
}

bool percent_parse(const char *text, double *ret_percent)
{
    char *end;
    /* strtod would skip spaces, and take words. */
    bool begins_well = (*text >= '0' && *text <= '9') || *text == '.';
    *ret_percent = strtod(text, &end);
    return begins_well && !*end && *ret_percent > 0 && *ret_percent <= 100;
}
