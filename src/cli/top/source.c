#include "cli/top/source.h"

#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The callback comes a few times a second. The first one after this time makes a view. */
#define VIEW_PERIOD_NS 950000000u

/* Takes over the profile. If memory is short, this view is skipped. */
static void publish(struct top_source *source, fgprof_profile *profile)
{
    uint64_t one = 1;
    struct top_view *view = top_view_new(profile);
    if (!view)
        return;
    pthread_mutex_lock(&source->lock);
    struct top_view *missed = source->next;
    source->next = view;
    pthread_mutex_unlock(&source->lock);
    top_view_free(missed);
    ssize_t written = write(source->wake_fd, &one, sizeof one);
    (void)written;
}

static void on_progress(const struct fgprof_progress *progress, void *context)
{
    struct top_source *source = context;
    fgprof_profile *profile;
    bool is_first = !source->viewed_ns && progress->samples;
    if (!is_first && progress->elapsed_ns - source->viewed_ns < VIEW_PERIOD_NS)
        return;
    source->viewed_ns = progress->elapsed_ns;
    if (fgprof_recorder_profile_so_far(source->recorder, &profile) == 0)
        publish(source, profile);
}

void top_source_enable(struct top_source *source, fgprof_options *options)
{
    fgprof_options_set_progress(options, on_progress, source);
}

static void *run(void *context)
{
    struct top_source *source = context;
    uint64_t one = 1;
    fgprof_profile *profile;
    int err = fgprof_recorder_run(source->recorder, &profile);
    if (!err) {
        struct fgprof_summary summary;
        fgprof_profile_summary(profile, &summary, sizeof summary);
        err = summary.error;
        publish(source, profile);
    }
    pthread_mutex_lock(&source->lock);
    source->has_ended = true;
    source->error = err;
    pthread_mutex_unlock(&source->lock);
    ssize_t written = write(source->wake_fd, &one, sizeof one);
    (void)written;
    return NULL;
}

int top_source_start(struct top_source *source, fgprof_recorder *recorder)
{
    sigset_t all, before;
    source->recorder = recorder;
    source->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (source->wake_fd < 0)
        return -errno;
    pthread_mutex_init(&source->lock, NULL);
    /* The thread that has the terminal handles signals. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&source->thread, NULL, run, source);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err) {
        pthread_mutex_destroy(&source->lock);
        close(source->wake_fd);
    }
    return -err;
}

struct top_view *top_source_take(struct top_source *source, bool *ret_has_ended, int *ret_error)
{
    uint64_t count;
    ssize_t got = read(source->wake_fd, &count, sizeof count);
    (void)got;
    pthread_mutex_lock(&source->lock);
    struct top_view *view = source->next;
    source->next = NULL;
    *ret_has_ended = source->has_ended;
    *ret_error = source->error;
    pthread_mutex_unlock(&source->lock);
    return view;
}

void top_source_stop(struct top_source *source)
{
    fgprof_recorder_stop(source->recorder);
    pthread_join(source->thread, NULL);
    top_view_free(source->next);
    close(source->wake_fd);
    pthread_mutex_destroy(&source->lock);
}
