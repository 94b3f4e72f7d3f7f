#ifndef FGPROF_CLI_OPTIONS_DURATION_H
#define FGPROF_CLI_OPTIONS_DURATION_H

#include <stdbool.h>
#include <stdint.h>

/* Reads "30s", "1.5m", "2h", "500ms", or plain seconds. Returns false for anything else, for 0, and
 * for more than 366 days. */
bool duration_parse(const char *text, uint64_t *ret_ns);

/* Reads a whole decimal number from `min` to `max`, with nothing before or after it. */
bool number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number);

/* Reads a number of bytes from 1 to `max`, with K, M or G behind it for those of 1024. */
bool bytes_parse(const char *text, uint64_t max, uint64_t *ret_bytes);

#endif
