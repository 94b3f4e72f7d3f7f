/* What `top` shows, made in the thread that samples, about once a second. */
#ifndef FGPROF_CLI_TOP_SOURCE_H
#define FGPROF_CLI_TOP_SOURCE_H

#include "cli/top/view.h"

#include <pthread.h>

struct top_source {
    fgprof_recorder *recorder;
    pthread_t thread;
    uint64_t viewed_ns;    /* elapsed then */
    int wake_fd;           /* an eventfd: there is something new */
    pthread_mutex_t lock;  /* for what follows */
    struct top_view *next; /* NULL: it was taken */
    bool has_ended;
    int error; /* why sampling failed: 0 or a negative errno */
};

/* Has `options` tell this source how sampling goes. */
void top_source_enable(struct top_source *source, fgprof_options *options);

/* Starts sampling. Returns 0 or a negative errno. */
int top_source_start(struct top_source *source, fgprof_recorder *recorder);

/* The newest view, of all samples, the caller's; NULL where there is none that was not taken. */
struct top_view *top_source_take(struct top_source *source, bool *ret_has_ended, int *ret_error);

/* Ends sampling and waits for the end. */
void top_source_stop(struct top_source *source);

#endif
