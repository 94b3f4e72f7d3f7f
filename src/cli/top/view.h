/* What `top` shows for one moment: a profile and its sums. */
#ifndef FGPROF_CLI_TOP_VIEW_H
#define FGPROF_CLI_TOP_VIEW_H

#include "fgprof.h"

/* Which samples the functions' times include. */
struct top_choice {
    enum fgprof_kept kept;
    pid_t tid;       /* one thread's; 0: those of all threads */
    bool hides_idle; /* leave out threads that only slept in one place */
};

/* The profile so far, and its rows. */
struct top_view {
    fgprof_profile *profile;
    struct fgprof_summary summary;
    struct fgprof_function *functions; /* by name and module */
    size_t function_count;
    struct fgprof_activity *activities; /* of all samples, sorted by thread first */
    size_t activity_count;
    struct fgprof_wait *waits; /* of all samples, sorted by process and resource first */
    size_t wait_count;
    pid_t *busy_tids; /* threads that are not idle, ascending */
    size_t busy_count;
};

/* Takes over the profile, even on failure, and sums up all samples. NULL if memory is short. */
struct top_view *top_view_new(fgprof_profile *profile);
/* Sums the functions up anew. Threads are idle if they are idle in `newest`. Returns 0, or -ENOMEM,
 * and then the view is unchanged. */
int top_view_count(struct top_view *view, const struct top_choice *choice,
                   const struct top_view *newest);
bool top_view_is_busy(const struct top_view *view, pid_t tid);
void top_view_free(struct top_view *view);

/* The order of rows. */
int top_compare_functions(const struct fgprof_function *left, const struct fgprof_function *right);
int top_compare_activities(const struct fgprof_activity *left, const struct fgprof_activity *right);
int top_compare_waits(const struct fgprof_wait *left, const struct fgprof_wait *right);

#endif
