#include "cli/top/view.h"
#include "base/background_thread.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* No name comes before an empty one. */
static int compare_names(const char *left, const char *right)
{
    int order = strcmp(left ? left : "", right ? right : "");
    return order ? order : (left != NULL) - (right != NULL);
}

int top_compare_functions(const void *a, const void *b)
{
    const struct fgprof_function *left = a, *right = b;
    int order = compare_names(left->name, right->name);
    return order ? order : strcmp(left->module, right->module);
}

int top_compare_activities(const void *a, const void *b)
{
    const struct fgprof_activity *left = a, *right = b;
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
        order = strcmp(left->module, right->module);
    return order ? order : strcmp(left->resource, right->resource);
}

int top_compare_waits(const void *a, const void *b)
{
    const struct fgprof_wait *left = a, *right = b;
    if (left->pid != right->pid)
        return left->pid < right->pid ? -1 : 1;
    int order = strcmp(left->resource, right->resource);
    if (!order)
        order = compare_names(left->owner, right->owner);
    if (!order)
        order = compare_names(left->waker, right->waker);
    if (!order)
        order = ORDER(left->tid, right->tid);
    return order ? order : strcmp(left->thread_name, right->thread_name);
}

static int count_waits(struct top_view *view)
{
    fgprof_waits *table;
    int err = fgprof_profile_waits(view->profile, &table);
    if (err)
        return err;
    view->wait_count = fgprof_waits_count(table);
    view->waits = calloc(view->wait_count + 1, sizeof *view->waits);
    for (size_t i = 0; view->waits && i < view->wait_count; i++)
        fgprof_waits_get(table, i, &view->waits[i], sizeof view->waits[i]);
    fgprof_waits_free(table);
    if (!view->waits)
        return -ENOMEM;
    array_sort(view->waits, view->wait_count, top_compare_waits);
    return 0;
}

/* As in reports, a thread that waits for a lock is never idle: it has something to do. */
static bool waits_idly(const struct fgprof_activity *activity)
{
    return activity->state == FGPROF_STATE_WAITING &&
           strncmp(activity->resource, "mutex", 5) != 0 &&
           strncmp(activity->resource, "read-write lock", 15) != 0;
}

static int count_activities(struct top_view *view)
{
    fgprof_activities *table;
    int err = fgprof_profile_activities(view->profile, &table);
    if (err)
        return err;
    view->activity_count = fgprof_activities_count(table);
    view->activities = calloc(view->activity_count + 1, sizeof *view->activities);
    view->busy_tids = calloc(view->activity_count + 1, sizeof *view->busy_tids);
    for (size_t i = 0; view->activities && i < view->activity_count; i++)
        fgprof_activities_get(table, i, &view->activities[i], sizeof view->activities[i]);
    fgprof_activities_free(table);
    if (!view->activities || !view->busy_tids)
        return -ENOMEM;
    array_sort(view->activities, view->activity_count, top_compare_activities);
    for (size_t first = 0, next; first < view->activity_count; first = next) {
        const struct fgprof_activity *activity = &view->activities[first];
        for (next = first + 1; next < view->activity_count; next++) {
            if (view->activities[next].tid != activity->tid)
                break;
        }
        if (next > first + 1 || !waits_idly(activity))
            view->busy_tids[view->busy_count++] = activity->tid;
    }
    return 0;
}

struct top_view *top_view_new(fgprof_profile *profile)
{
    const struct top_choice all = {.kept = FGPROF_KEPT_ALL};
    struct top_view *view = calloc(1, sizeof *view);
    if (!view) {
        fgprof_profile_free(profile);
        return NULL;
    }
    view->profile = profile;
    fgprof_profile_summary(profile, &view->summary, sizeof view->summary);
    if (count_activities(view) || count_waits(view) || top_view_count(view, &all, view)) {
        top_view_free(view);
        return NULL;
    }
    return view;
}

int top_view_count(struct top_view *view, const struct top_choice *choice,
                   const struct top_view *newest)
{
    fgprof_functions *table;
    size_t tid_count = choice->tid ? 1 : newest->busy_count;
    const pid_t *tids = choice->tid ? &choice->tid : choice->hides_idle ? newest->busy_tids : NULL;
    fgprof_profile_set_kept(view->profile, choice->kept);
    int err = fgprof_profile_functions(view->profile, tids, tid_count, &table);
    fgprof_profile_set_kept(view->profile, FGPROF_KEPT_ALL);
    if (err)
        return err;
    size_t count = fgprof_functions_count(table);
    struct fgprof_function *functions = calloc(count + 1, sizeof *functions);
    for (size_t i = 0; functions && i < count; i++)
        fgprof_functions_get(table, i, &functions[i], sizeof functions[i]);
    fgprof_functions_free(table);
    if (!functions)
        return -ENOMEM;
    array_sort(functions, count, top_compare_functions);
    free(view->functions);
    view->functions = functions;
    view->function_count = count;
    return 0;
}

int top_compare_tids(const void *a, const void *b)
{
    const pid_t *left = a, *right = b;
    return ORDER(*left, *right);
}

bool top_view_is_busy(const struct top_view *view, pid_t tid)
{
    return view->busy_count &&
           bsearch(&tid, view->busy_tids, view->busy_count, sizeof tid, top_compare_tids);
}

void top_view_free(struct top_view *view)
{
    if (!view)
        return;
    free(view->functions);
    free(view->activities);
    free(view->waits);
    free(view->busy_tids);
    fgprof_profile_free(view->profile);
    free(view);
}

/* The callback comes a few times a second. The first one after this time makes a view. */
#define VIEW_PERIOD_NS 950000000u

/* Takes over the profile. If memory is short, this view is skipped. */
static void publish(struct top_source *source, fgprof_profile *profile)
{
    struct top_view *view = top_view_new(profile);
    if (!view)
        return;
    pthread_mutex_lock(&source->lock);
    struct top_view *missed = source->next;
    source->next = view;
    pthread_mutex_unlock(&source->lock);
    top_view_free(missed);
    eventfd_write(source->wake_fd, 1);
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
    eventfd_write(source->wake_fd, 1);
    return NULL;
}

int top_source_start(struct top_source *source, fgprof_recorder *recorder)
{
    source->recorder = recorder;
    source->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (source->wake_fd < 0)
        return -errno;
    pthread_mutex_init(&source->lock, NULL);
    /* The thread that has the terminal handles signals. */
    int err = background_thread_start(run, source, &source->thread);
    if (err) {
        pthread_mutex_destroy(&source->lock);
        close(source->wake_fd);
    }
    return err;
}

struct top_view *top_source_take(struct top_source *source, bool *ret_has_ended, int *ret_error)
{
    eventfd_t count;
    eventfd_read(source->wake_fd, &count);
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
