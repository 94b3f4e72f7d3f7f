/* The rows of `top`, made from three views, sorted and filtered. */
#ifndef FGPROF_CLI_TOP_TABLE_H
#define FGPROF_CLI_TOP_TABLE_H

#include "cli/top/view.h"

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

/* The filter for rows: a regular expression, or plain text if it is not a valid one. */
struct top_filter {
    char text[256]; /* "": no filter, all rows match */
    regex_t regex;
    bool is_regex;
};

/* Replaces the filter. If `text` is not a regular expression, such as "operator[", it is searched
 * for as plain text, and the reason is put into `why`; otherwise `why` is "". */
void top_filter_set(struct top_filter *filter, const char *text, char *why, size_t why_bytes);
void top_filter_free(struct top_filter *filter);

enum top_sort { TOP_BY_SELF, TOP_BY_TOTAL, TOP_BY_NAME };

struct top_order {
    enum top_sort sort;
    bool since_start; /* sort by time since the start; else by the last second */
};

struct top_function {
    const char *name, *module;
    uint64_t recent_own_ns, recent_total_ns, own_ns, total_ns;
    uint64_t recent_state_ns[FGPROF_STATE_COUNT]; /* recent_total_ns by state */
};

struct top_thread {
    pid_t tid;
    const char *name;
    uint64_t recent_ns[FGPROF_STATE_COUNT];
    uint64_t most_ns; /* the largest part of the last second, spent in what follows */
    enum fgprof_state state;
    const char *syscall, *function, *module;
    const char *resource; /* that it waited for there; "": none */
};

/* What threads waited for. */
struct top_wait {
    const char *resource;
    const char *owner;          /* which had it for most of the time; NULL: not known */
    bool is_waker;              /* that is what ended the waits: no owner is known */
    size_t waiters;             /* threads that waited for it in the last second */
    uint64_t recent_ns, all_ns; /* of all threads together */
    uint64_t owner_recent_ns, owner_all_ns;
};

/* Recent times are those of `now` minus those of `before`; times since the start are those of `now`
 * minus those of `base`. `before` and `base` may be NULL, which counts as 0. Rows without any time
 * are left out, as are rows that `filter` (may be NULL) does not match, and idle threads if
 * `hides_idle`. The caller frees the rows. Return 0 or -ENOMEM. */
int top_functions(const struct top_view *now, const struct top_view *before,
                  const struct top_view *base, const struct top_filter *filter,
                  struct top_order order, struct top_function **ret_rows, size_t *ret_count);
int top_threads(const struct top_view *now, const struct top_view *before,
                const struct top_filter *filter, bool hides_idle, struct top_thread **ret_rows,
                size_t *ret_count);
int top_waits(const struct top_view *now, const struct top_view *before,
              const struct top_view *base, const struct top_filter *filter,
              struct top_wait **ret_rows, size_t *ret_count);

#endif
