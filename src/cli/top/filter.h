/* The filter for rows of `top`: a regular expression, or plain text if it is not a valid one. */
#ifndef FGPROF_CLI_TOP_FILTER_H
#define FGPROF_CLI_TOP_FILTER_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

struct top_filter {
    char text[256]; /* "": no filter, all rows match */
    regex_t regex;
    bool is_regex;
};

/* Replaces the filter. If `text` is not a regular expression, as "operator[", it is searched as
 * plain text, and the reason is put into `why`; else `why` is "". */
void top_filter_set(struct top_filter *filter, const char *text, char *why, size_t why_bytes);
void top_filter_free(struct top_filter *filter);

/* `text`: NULL means "". */
bool top_filter_matches(const struct top_filter *filter, const char *text);

#endif
