/* Values of options. */
#ifndef FGPROF_CLI_OPTIONS_VALUES_H
#define FGPROF_CLI_OPTIONS_VALUES_H

#include "fgprof.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads digits with at most one point among them. Returns the end of the number, or NULL if there
 * is none. */
const char *decimal_parse(const char *text, double *ret_value);

/* Reads "30s", "1.5m", "2h", "500ms", or plain seconds. Returns false for anything else, for 0, and
 * for more than 366 days. */
bool duration_parse(const char *text, uint64_t *ret_ns);

/* Reads a whole decimal number from `min` to `max`, with nothing before or after it. */
bool number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number);

/* Reads a number of bytes from 1 to `max`, with K, M or G behind it for those of 1024. */
bool bytes_parse(const char *text, uint64_t max, uint64_t *ret_bytes);

/* Takes "HOST", "HOST:PORT" or "[IPV6]:PORT" apart. Copies the host, without brackets; *ret_port is
 * all that follows the colon, NULL if there is none. Returns false if it is something else, or if
 * the host does not fit. */
bool host_parse(const char *text, char *host, size_t host_bytes, const char **ret_port);

/* Prints on stderr that `value` is bad for `what`, and what is wanted instead. Returns false. */
bool complain(const char *what, const char *value, const char *wanted);

/* The same; `near`, if it is not NULL, is what the value probably means. */
bool complain_near(const char *what, const char *value, const char *near, const char *wanted);

/* Appends an id. Returns false, with errno ENOMEM, if memory is short. */
bool id_add(pid_t **ids, size_t *id_count, pid_t id);

bool id_is_there(const pid_t *ids, size_t count, pid_t id);

/* Adds ids such as "12,34" to *ids, which the caller frees. Prints errors except for errno ENOMEM.
 */
bool ids_parse(const char *list, const char *what, pid_t **ids, size_t *id_count);

/* Whether the value of `what` is an extended regular expression. Prints errors, except for errno
 * ENOMEM. */
bool regex_check(const char *what, const char *value);

/* Reads a number above 0, at most 100. */
bool percent_parse(const char *text, double *ret_percent);

#endif
