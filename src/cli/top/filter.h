/* What rows of `top` are to match: a regular expression, or text where it is none. */
#ifndef FGPROF_CLI_TOP_FILTER_H
#define FGPROF_CLI_TOP_FILTER_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

struct top_filter {
    char text[256]; /* "": none, and all matches */
    regex_t regex;
    bool is_regex;
};

/* In place of what was set. `text` that is no regular expression, as "operator[", is looked for as
 * it is: then why it is none is put into `why`, else "". */
void top_filter_set(struct top_filter *filter, const char *text, char *why, size_t why_bytes);
void top_filter_free(struct top_filter *filter);

/* `text`: NULL for "". */
bool top_filter_matches(const struct top_filter *filter, const char *text);

#endif
