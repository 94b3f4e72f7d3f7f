/* Makes the views that `top` shows, about once a second, in a thread of its own. */
#ifndef FGPROF_CLI_TOP_SOURCE_H
#define FGPROF_CLI_TOP_SOURCE_H

#include "cli/top/view.h"

#include <pthread.h>

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
