#include "top_source.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The callback comes a few times a second: the first one after so long makes a view. */
#define VIEW_PERIOD_NS 950000000u

static int compare_names(const char *left, const char *right)
{
    return strcmp(left ? left : "", right ? right : "");
}

int top_compare_functions(const struct fgprof_function *left, const struct fgprof_function *right)
{
    int order = compare_names(left->name, right->name);
    if (!order)
        order = (left->name != NULL) - (right->name != NULL);
    return order ? order : strcmp(left->module, right->module);
}

int top_compare_activities(const struct fgprof_activity *left, const struct fgprof_activity *right)
{
    if (left->tid != right->tid)
        return left->tid < right->tid ? -1 : 1;
    int order = strcmp(left->thread_name, right->thread_name);
    if (!order)
        order = (int)left->state - (int)right->state;
    if (!order)
        order = strcmp(left->syscall, right->syscall);
    if (!order)
        order = compare_names(left->function, right->function);
    if (!order)
        order = (left->function != NULL) - (right->function != NULL);
    return order ? order : strcmp(left->module, right->module);
}

static int compare_functions(const void *left, const void *right)
{
    return top_compare_functions(left, right);
}

static int compare_activities(const void *left, const void *right)
{
    return top_compare_activities(left, right);
}

int top_view_count(struct top_view *view, enum fgprof_kept kept)
{
    struct fgprof_function *functions;
    struct fgprof_activity *activities;
    size_t function_count, activity_count;
    fgprof_profile_set_kept(view->profile, kept);
    int err = fgprof_profile_functions(view->profile, &functions, &function_count);
    fgprof_profile_set_kept(view->profile, FGPROF_KEPT_ALL);
    if (err)
        return err;
    err = fgprof_profile_activities(view->profile, &activities, &activity_count);
    if (err) {
        free(functions);
        return err;
    }
    qsort(functions, function_count, sizeof *functions, compare_functions);
    qsort(activities, activity_count, sizeof *activities, compare_activities);
    free(view->functions);
    free(view->activities);
    view->functions = functions;
    view->function_count = function_count;
    view->activities = activities;
    view->activity_count = activity_count;
    return 0;
}

void top_view_free(struct top_view *view)
{
    if (!view)
        return;
    free(view->functions);
    free(view->activities);
    fgprof_profile_free(view->profile);
    free(view);
}

/* Takes over the profile. Where memory is short the view is left out, and the next one may do. */
static void publish(struct top_source *source, fgprof_profile *profile)
{
    uint64_t one = 1;
    struct top_view *view = calloc(1, sizeof *view);
    if (!view) {
        fgprof_profile_free(profile);
        return;
    }
    view->profile = profile;
    if (top_view_count(view, FGPROF_KEPT_ALL)) {
        top_view_free(view);
        return;
    }
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
        err = fgprof_profile_summary(profile)->error;
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
    /* Signals are for the thread that has the terminal. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&source->thread, NULL, run, source);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err)
        close(source->wake_fd);
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
