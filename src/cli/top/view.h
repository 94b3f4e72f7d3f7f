/* What `top` shows of one moment: a profile, and the sums of it. */
#ifndef FGPROF_CLI_TOP_VIEW_H
#define FGPROF_CLI_TOP_VIEW_H

#include "fgprof.h"

/* What the functions' times are of. */
struct top_choice {
    enum fgprof_kept kept;
    pid_t tid;       /* of one thread; 0: of all, */
    bool hides_idle; /* or of all but those that did nothing but wait at one place */
};

/* The profile so far, and its rows. */
struct top_view {
    fgprof_profile *profile;
    struct fgprof_function *functions; /* by name and module */
    size_t function_count;
    struct fgprof_activity *activities; /* of all samples, by thread and the rest */
    size_t activity_count;
    pid_t *busy_tids; /* ascending: of threads that are not idle */
    size_t busy_count;
};

/* Takes over the profile, also where it fails. All samples are summed up. NULL: no memory. */
struct top_view *top_view_new(fgprof_profile *profile);
/* Sums the functions up anew; idle are those that are so in `newest`. Returns 0 or -ENOMEM, and
 * then the view is as it was. */
int top_view_count(struct top_view *view, const struct top_choice *choice,
                   const struct top_view *newest);
bool top_view_is_busy(const struct top_view *view, pid_t tid);
void top_view_free(struct top_view *view);

/* The order of rows. */
int top_compare_functions(const struct fgprof_function *left, const struct fgprof_function *right);
int top_compare_activities(const struct fgprof_activity *left, const struct fgprof_activity *right);

#endif
