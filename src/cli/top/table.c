#include "cli/top/table.h"
#include "base/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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

/* `text`: NULL means "". */
static bool matches(const struct top_filter *filter, const char *text)
{
    text = text ? text : "";
    if (filter && filter->is_regex)
        return regexec(&filter->regex, text, 0, NULL, 0) == 0;
    return !filter || strstr(text, filter->text);
}

static int compare_self(const void *a, const void *b)
{
    const struct top_function *left = a, *right = b;
    int order = ORDER(right->recent_own_ns, left->recent_own_ns);
    if (!order)
        order = ORDER(right->own_ns, left->own_ns);
    return order ? order : ORDER(right->recent_total_ns, left->recent_total_ns);
}

static int compare_self_since_start(const void *a, const void *b)
{
    const struct top_function *left = a, *right = b;
    return ORDER(right->own_ns, left->own_ns);
}

static int compare_total(const void *a, const void *b)
{
    const struct top_function *left = a, *right = b;
    int order = ORDER(right->recent_total_ns, left->recent_total_ns);
    return order ? order : ORDER(right->total_ns, left->total_ns);
}

static int compare_total_since_start(const void *a, const void *b)
{
    const struct top_function *left = a, *right = b;
    return ORDER(right->total_ns, left->total_ns);
}

static int compare_name(const void *a, const void *b)
{
    const struct top_function *left = a, *right = b;
    int order = strcmp(left->name ? left->name : "", right->name ? right->name : "");
    return order ? order : strcmp(left->module, right->module);
}

static void sort(struct top_function *rows, size_t count, struct top_order order)
{
    if (order.sort == TOP_BY_NAME)
        array_sort(rows, count, compare_name);
    else if (order.sort == TOP_BY_SELF)
        array_sort(rows, count, order.since_start ? compare_self_since_start : compare_self);
    else
        array_sort(rows, count, order.since_start ? compare_total_since_start : compare_total);
}

/* How much a time has grown. It can shrink only by rounding, or if the code got another name. */
static uint64_t more(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

/* The view's row for the same function as `sought`. */
static const struct fgprof_function *find_function(const struct top_view *view,
                                                   const struct fgprof_function *sought)
{
    static const struct fgprof_function none;
    const struct fgprof_function *found = NULL;
    if (view)
        found = bsearch(sought, view->functions, view->function_count, sizeof *sought,
                        top_compare_functions);
    return found ? found : &none;
}

int top_functions(const struct top_view *now, const struct top_view *before,
                  const struct top_view *base, const struct top_filter *filter,
                  struct top_order order, struct top_function **ret_rows, size_t *ret_count)
{
    struct top_function *rows = calloc(now->function_count + 1, sizeof *rows);
    size_t count = 0;
    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < now->function_count; i++) {
        const struct fgprof_function *row = &now->functions[i];
        const struct fgprof_function *old = find_function(before, row);
        const struct fgprof_function *first = find_function(base, row);
        struct top_function made = {
            .name = row->name,
            .module = row->module,
            .recent_own_ns = more(row->own_ns, old->own_ns),
            .recent_total_ns = more(row->total_ns, old->total_ns),
            .own_ns = more(row->own_ns, first->own_ns),
            .total_ns = more(row->total_ns, first->total_ns),
        };
        for (size_t state = 0; state < FGPROF_STATE_COUNT; state++)
            made.recent_state_ns[state] = more(row->state_ns[state], old->state_ns[state]);
        if ((made.total_ns || made.recent_total_ns) &&
            (matches(filter, made.name) || matches(filter, made.module)))
            rows[count++] = made;
    }
    sort(rows, count, order);
    *ret_rows = rows;
    *ret_count = count;
    return 0;
}

static int compare_threads(const void *a, const void *b)
{
    const struct top_thread *left = a, *right = b;
    int order =
        ORDER(right->recent_ns[FGPROF_STATE_RUNNING], left->recent_ns[FGPROF_STATE_RUNNING]);
    return order ? order : ORDER(left->tid, right->tid);
}

static void add_activity(struct top_thread *row, const struct fgprof_activity *activity,
                         uint64_t recent_ns)
{
    row->recent_ns[activity->state] += recent_ns;
    if (recent_ns < row->most_ns)
        return;
    row->most_ns = recent_ns;
    row->state = activity->state;
    row->syscall = activity->syscall;
    row->function = activity->function;
    row->module = activity->module;
    row->resource = activity->resource;
}

int top_threads(const struct top_view *now, const struct top_view *before,
                const struct top_filter *filter, bool hides_idle, struct top_thread **ret_rows,
                size_t *ret_count)
{
    struct top_thread *rows = calloc(now->activity_count + 1, sizeof *rows);
    size_t count = 0, kept = 0;
    if (!rows)
        return -ENOMEM;
    for (size_t i = 0; i < now->activity_count; i++) {
        const struct fgprof_activity *activity = &now->activities[i], *old = NULL;
        if (before)
            old = bsearch(activity, before->activities, before->activity_count, sizeof *old,
                          top_compare_activities);
        uint64_t recent_ns = more(activity->time_ns, old ? old->time_ns : 0);
        if (!recent_ns)
            continue;
        /* A thread that renamed itself is one row, with the name of its last activity. */
        if (!count || rows[count - 1].tid != activity->tid)
            rows[count++] = (struct top_thread){.tid = activity->tid};
        rows[count - 1].name = activity->thread_name;
        add_activity(&rows[count - 1], activity, recent_ns);
    }
    for (size_t i = 0; i < count; i++) {
        bool is_shown = !hides_idle || top_view_is_busy(now, rows[i].tid);
        if (is_shown && (matches(filter, rows[i].name) || matches(filter, rows[i].function) ||
                         matches(filter, rows[i].syscall) || matches(filter, rows[i].resource)))
            rows[kept++] = rows[i];
    }
    array_sort(rows, kept, compare_threads);
    *ret_rows = rows;
    *ret_count = kept;
    return 0;
}

/* How much the time of row `sought` has grown since the view. */
static uint64_t wait_since(const struct top_view *view, const struct fgprof_wait *sought)
{
    const struct fgprof_wait *old = NULL;
    if (view)
        old = bsearch(sought, view->waits, view->wait_count, sizeof *old, top_compare_waits);
    return more(sought->time_ns, old ? old->time_ns : 0);
}

static int compare_waits(const void *a, const void *b)
{
    const struct top_wait *left = a, *right = b;
    int order = ORDER(right->recent_ns, left->recent_ns);
    return order ? order : ORDER(right->all_ns, left->all_ns);
}

static size_t count_distinct(pid_t *tids, size_t count)
{
    size_t distinct = 0;
    array_sort(tids, count, top_compare_tids);
    for (size_t i = 0; i < count; i++)
        distinct += i == 0 || tids[i] != tids[i - 1];
    return distinct;
}

/* One owner's time is complete. */
static void choose_owner(struct top_wait *row, const struct fgprof_wait *wait, uint64_t recent_ns,
                         uint64_t all_ns)
{
    const char *owner = wait->owner ? wait->owner : wait->waker;
    bool has_more = recent_ns != row->owner_recent_ns ? recent_ns > row->owner_recent_ns
                                                      : all_ns > row->owner_all_ns;
    if (!owner || !has_more)
        return;
    row->owner = owner;
    row->is_waker = !wait->owner;
    row->owner_recent_ns = recent_ns;
    row->owner_all_ns = all_ns;
}

static bool is_same_owner(const struct fgprof_wait *left, const struct fgprof_wait *right)
{
    const char *of_left = left->owner ? left->owner : left->waker;
    const char *of_right = right->owner ? right->owner : right->waker;
    if (!left->owner != !right->owner || !of_left != !of_right)
        return false;
    return !of_left || strcmp(of_left, of_right) == 0;
}

static bool is_same_resource(const struct fgprof_wait *left, const struct fgprof_wait *right)
{
    return left->pid == right->pid && strcmp(left->resource, right->resource) == 0;
}

/* Sums up the rows of one resource, from `first` on. Returns where the next one begins. `tids` has
 * room for all rows. */
static size_t sum_resource(const struct top_view *const views[3], size_t first, pid_t *tids,
                           struct top_wait *ret_row)
{
    const struct top_view *now = views[0];
    const struct fgprof_wait *head = &now->waits[first];
    uint64_t recent_ns = 0, all_ns = 0;
    size_t next, tid_count = 0;
    *ret_row = (struct top_wait){.resource = head->resource};
    for (next = first; next < now->wait_count; next++) {
        const struct fgprof_wait *wait = &now->waits[next];
        if (!is_same_resource(wait, head))
            break;
        uint64_t recent = wait_since(views[1], wait);
        uint64_t all = wait_since(views[2], wait);
        if (recent)
            tids[tid_count++] = wait->tid;
        recent_ns += recent;
        all_ns += all;
        ret_row->recent_ns += recent;
        ret_row->all_ns += all;
        if (next + 1 == now->wait_count || !is_same_resource(wait + 1, head) ||
            !is_same_owner(wait + 1, wait)) {
            choose_owner(ret_row, wait, recent_ns, all_ns);
            recent_ns = all_ns = 0;
        }
    }
    ret_row->waiters = count_distinct(tids, tid_count);
    return next;
}

int top_waits(const struct top_view *now, const struct top_view *before,
              const struct top_view *base, const struct top_filter *filter,
              struct top_wait **ret_rows, size_t *ret_count)
{
    const struct top_view *const views[] = {now, before, base};
    struct top_wait *rows = calloc(now->wait_count + 1, sizeof *rows);
    pid_t *tids = calloc(now->wait_count + 1, sizeof *tids);
    size_t count = 0;
    for (size_t i = 0; rows && tids && i < now->wait_count;) {
        struct top_wait row;
        i = sum_resource(views, i, tids, &row);
        if ((row.recent_ns || row.all_ns) &&
            (matches(filter, row.resource) || matches(filter, row.owner)))
            rows[count++] = row;
    }
    bool is_made = rows && tids;
    free(tids);
    if (!is_made) {
        free(rows);
        return -ENOMEM;
    }
    array_sort(rows, count, compare_waits);
    *ret_rows = rows;
    *ret_count = count;
    return 0;
}
