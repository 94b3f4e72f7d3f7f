#include "cli/options/values.h"
#include "cli/options/duration.h"

#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool complain(const char *what, const char *value, const char *wanted)
{
    fprintf(stderr, "fgprof-c: bad %s '%s': %s\n", what, value, wanted);
    return false;
}

static bool ids_parse(const char *list, const char *what, pid_t **ids, size_t *id_count)
{
    char *copy = strdup(list), *rest = copy, *word;
    bool ok = copy != NULL;
    while (ok && (word = strsep(&rest, ","))) {
        uint64_t id;
        ok = number_parse(word, 1, INT_MAX, &id);
        if (!ok) {
            complain(what, word, "give a number, or several such as 12,34");
            break;
        }
        pid_t *grown = reallocarray(*ids, *id_count + 1, sizeof *grown);
        ok = grown != NULL;
        if (ok) {
            *ids = grown;
            (*ids)[(*id_count)++] = (pid_t)id;
        }
    }
    free(copy);
    return ok;
}

bool pids_parse(const char *list, pid_t **pids, size_t *pid_count)
{
    return ids_parse(list, "process id", pids, pid_count);
}

bool tids_parse(const char *list, pid_t **tids, size_t *tid_count)
{
    return ids_parse(list, "thread id", tids, tid_count);
}

bool regex_check(const char *what, const char *value)
{
    regex_t compiled;
    char why[128];
    int failure = regcomp(&compiled, value, REG_EXTENDED | REG_NOSUB);
    if (!failure) {
        regfree(&compiled);
        return true;
    }
    regerror(failure, &compiled, why, sizeof why);
    return complain(what, value, why);
}

bool percent_parse(const char *text, double *ret_percent)
{
    char *end;
    /* strtod would also accept spaces, signs and words. */
    bool begins_well = (*text >= '0' && *text <= '9') || *text == '.';
    *ret_percent = strtod(text, &end);
    return begins_well && !*end && *ret_percent > 0 && *ret_percent <= 100;
}

bool threads_parse(const char *value, enum fgprof_threads *threads)
{
    if (!value)
        return true;
    *threads = FGPROF_THREADS_BY_ID;
    return strcmp(value, "tid") == 0 ||
           complain("--threads", value, "give --threads=tid, or no value");
}

bool complain_both(const char *one, const char *other, const char *without)
{
    fprintf(stderr, "fgprof-c: %s and %s exclude each other: give one of them, or neither for %s\n",
            one, other, without);
    return false;
}
