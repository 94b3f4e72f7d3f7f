#include "cli/top/filter.h"

#include <stdio.h>
#include <string.h>

void top_filter_free(struct top_filter *filter)
{
    if (filter->is_regex)
        regfree(&filter->regex);
    *filter = (struct top_filter){0};
}

void top_filter_set(struct top_filter *filter, const char *text, char *why, size_t why_bytes)
{
    *why = '\0';
    top_filter_free(filter);
    snprintf(filter->text, sizeof filter->text, "%s", text);
    if (!*text)
        return;
    int err = regcomp(&filter->regex, filter->text, REG_EXTENDED | REG_NOSUB);
    filter->is_regex = !err;
    if (err)
        regerror(err, &filter->regex, why, why_bytes);
}

bool top_filter_matches(const struct top_filter *filter, const char *text)
{
    text = text ? text : "";
    if (filter->is_regex)
        return regexec(&filter->regex, text, 0, NULL, 0) == 0;
    return strstr(text, filter->text) != NULL;
}
