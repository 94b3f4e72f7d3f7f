/* What `top` shows for one moment: a profile and its sums. */
#ifndef FGPROF_CLI_TOP_VIEW_H
#define FGPROF_CLI_TOP_VIEW_H

#include "fgprof.h"

#include <pthread.h>

/* Which samples the functions' times include. */
struct top_choice {
    enum fgprof_kept kept;
    pid_t tid;       /* as in struct fgprof_activity: one thread's; 0: those of all threads */
    bool hides_idle; /* leave out threads that only slept in one place, for no lock */
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
/* Sums up the functions again. Threads are idle if they are idle in `newest`. Returns 0, or
 * -ENOMEM, and then the view is unchanged. */
int top_view_count(struct top_view *view, const struct top_choice *choice,
                   const struct top_view *newest);
bool top_view_is_busy(const struct top_view *view, pid_t tid);
void top_view_free(struct top_view *view);

/* The order of rows, for qsort. */
int top_compare_functions(const void *a, const void *b);
int top_compare_activities(const void *a, const void *b);
int top_compare_waits(const void *a, const void *b);
int top_compare_tids(const void *a, const void *b);

/* Makes the views that `top` shows, about once a second, in a thread of its own. */
struct top_source {
    fgprof_recorder *recorder;
    pthread_t thread;
    uint64_t viewed_ns;    /* when the last view was made, since the start */
    int wake_fd;           /* an eventfd: there is a new view */
    pthread_mutex_t lock;  /* protects the fields below */
    struct top_view *next; /* NULL: it was taken */
    bool has_ended;
    int error; /* why sampling failed: 0 or a negative errno */
};

/* Sets `options` to report progress to this source. */
void top_source_enable(struct top_source *source, fgprof_options *options);

/* Starts sampling. Returns 0 or a negative errno. */
int top_source_start(struct top_source *source, fgprof_recorder *recorder);

/* Takes the newest view, which the caller frees; NULL if there is no new one. */
struct top_view *top_source_take(struct top_source *source, bool *ret_has_ended, int *ret_error);

/* Ends sampling and waits for the end. */
void top_source_stop(struct top_source *source);

#endif
