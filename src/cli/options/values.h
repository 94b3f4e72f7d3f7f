/* Values of options. */
#ifndef FGPROF_CLI_OPTIONS_VALUES_H
#define FGPROF_CLI_OPTIONS_VALUES_H

#include "fgprof.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Prints on stderr that `value` is bad for `what`, and what is wanted instead. Returns false. */
bool complain(const char *what, const char *value, const char *wanted);

/* Prints on stderr that the two options exclude each other, and what happens without both. Returns
 * false. */
bool complain_both(const char *one, const char *other, const char *without);

/* Adds process ids such as "12,34" to *pids, which the caller frees. Prints errors. */
bool pids_parse(const char *list, pid_t **pids, size_t *pid_count);

/* The same for thread ids. */
bool tids_parse(const char *list, pid_t **tids, size_t *tid_count);

/* Whether the value of `what` is an extended regular expression. Prints errors. */
bool regex_check(const char *what, const char *value);

/* Reads a number above 0, at most 100. */
bool percent_parse(const char *text, double *ret_percent);

/* Reads the value of --threads: "tid", or NULL if none was given. Prints errors. */
bool threads_parse(const char *value, enum fgprof_threads *threads);

#endif
