/* Values of options. */
#ifndef FGPROF_CLI_OPTIONS_VALUES_H
#define FGPROF_CLI_OPTIONS_VALUES_H

#include "fgprof.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Says on stderr that this value of `what` is bad, and what is wanted. Returns false. */
bool complain(const char *what, const char *value, const char *wanted);

/* Says on stderr that these options are not for one command line, and what there is without them.
 * Returns false. */
bool complain_both(const char *one, const char *other, const char *without);

/* Adds the process ids of "12,34" to *pids, which is the caller's to free. Says what is wrong. */
bool pids_parse(const char *list, pid_t **pids, size_t *pid_count);

/* The same for thread ids. */
bool tids_parse(const char *list, pid_t **tids, size_t *tid_count);

/* Whether it is an extended regular expression. Says what is wrong. */
bool regex_check(const char *text);

/* A number of more than 0, at most 100. */
bool percent_parse(const char *text, double *ret_percent);

/* The value of --threads: "tid", or NULL for none. Says what is wrong. */
bool threads_parse(const char *value, enum fgprof_threads *threads);

#endif
