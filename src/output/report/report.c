#include "output/report/report.h"
#include "base/text.h"
#include "output/output.h"
#include "output/report/objects.h"
#include "output/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A thread that waits for work for at least this share of its time is idle. Time waiting for a CPU
 * is excluded, because on a busy machine it is much of any thread's time. */
#define IDLE_SHARE_PERCENT 90

#define NO_LOCK UINT32_MAX

/* System calls in which threads wait for work or for a time. An interrupted poll or nanosleep
 * becomes restart_syscall. */
static const char *const calls_for_work[] = {
    "epoll_wait",   "epoll_pwait",     "epoll_pwait2",    "poll",       "ppoll",
    "select",       "pselect6",        "futex",           "futex_wait", "futex_waitv",
    "nanosleep",    "clock_nanosleep", "restart_syscall", "pause",      "rt_sigsuspend",
    "wait4",        "waitid",          "accept",          "accept4",    "rt_sigtimedwait",
    "io_getevents", "io_pgetevents",   "io_uring_enter",
};

/* What is known of each sample and stack while the report is made. */
struct making {
    struct report *report;
    uint32_t *thread_of;  /* by sample */
    uint32_t *lock_frame; /* by stack: the number of the frame, root first, or NO_LOCK */
    uint32_t *depth;      /* by stack: its frames down to the program's call of the C library */
    uint32_t *taker;      /* by stack: see report_find_semaphores */
    struct labelled_stack labelled;
};

static bool waits_for_work(const struct fgprof_profile *profile,
                           const struct profile_sample *sample)
{
    return sample->state == THREAD_SLEEPING &&
           text_is_any(strings_get(&profile->strings, sample->syscall_name), calls_for_work,
                       COUNT_OF(calls_for_work));
}

/* The outermost frame that waits for a lock, among the last few: a thread that has acquired the
 * lock is no longer in such a frame. */
static uint32_t find_lock_frame(const struct labels *labels, const struct labelled_stack *labelled)
{
    enum { FRAMES_IN_A_LOCK = 16 };
    uint32_t found = NO_LOCK;
    for (size_t i = labelled->depth; i-- > 0 && labelled->depth - i <= FRAMES_IN_A_LOCK;) {
        if (label_has_role(labels, labelled->labels[i], LABEL_LOCK))
            found = (uint32_t)i;
    }
    return found;
}

/* What the taker of a semaphore calls to wait for it. */
static uint32_t find_semaphore_frame(const struct labels *labels,
                                     const struct labelled_stack *labelled, const char *taker)
{
    for (size_t i = labelled->depth; i-- > 1;) {
        if (strcmp(label_text(labels, labelled->labels[i - 1]), taker) == 0)
            return (uint32_t)i;
    }
    return NO_LOCK;
}

/* Stacks are cut in the C library, because the rest depends on the library's version. */
static int look_at_stacks(struct making *making)
{
    const struct fgprof_profile *profile = making->report->profile;
    struct labels *labels = &making->report->labels;
    int err = report_find_semaphores(profile, making->taker);
    for (size_t i = 0; i < profile->stack_count && !err; i++) {
        const struct labelled_stack *labelled = &making->labelled;
        err = labels_of_stack(labels, profile, &profile->stacks[i], &making->labelled);
        if (err)
            break;
        if (making->taker[i] != NO_TAKER)
            making->lock_frame[i] = find_semaphore_frame(
                labels, labelled, strings_get(&profile->strings, making->taker[i]));
        if (making->taker[i] == NO_TAKER || making->lock_frame[i] == NO_LOCK)
            making->lock_frame[i] = find_lock_frame(labels, labelled);
        making->depth[i] = making->lock_frame[i] != NO_LOCK ? making->lock_frame[i] + 1
                                                            : (uint32_t)labelled->program_depth;
    }
    return err;
}

static bool is_same_thread(const void *owner, uint32_t item, const void *key)
{
    const struct report_thread *known = &((const struct report *)owner)->threads[item];
    const struct report_thread *sought = key;
    return known->process == sought->process && known->tid == sought->tid &&
           known->is_goroutine == sought->is_goroutine &&
           (known->tid || known->name == sought->name);
}

static int get_thread(struct report *report, const struct profile_sample *sample,
                      uint32_t *ret_thread)
{
    struct report_thread key = {.process =
                                    sample->process < report->process_count ? sample->process : 0,
                                .name = sample->thread_name,
                                .tid = sample->tid,
                                .is_goroutine = sample->is_goroutine,
                                .never_moved = true};
    uint32_t hashed[] = {key.process, key.tid, key.tid ? 0 : key.name, key.is_goroutine};
    uint64_t hash = hash_bytes(hashed, sizeof hashed, 0);
    *ret_thread = index_find(&report->thread_index, hash, is_same_thread, report, &key);
    if (*ret_thread != INDEX_NONE)
        return 0;
    *ret_thread = (uint32_t)report->thread_count;
    if (INDEX_APPEND(&report->thread_index, hash, &report->threads, &report->thread_count,
                     &report->thread_capacity, key))
        return -ENOMEM;
    report->processes[key.process].threads++;
    return 0;
}

static void add_time(struct report_times *times, const struct profile_sample *sample, bool is_idle)
{
    times->all_ns += sample->time_ns;
    times->state_ns[sample_state(sample)] += sample->time_ns;
    times->idle_ns += is_idle ? sample->time_ns : 0;
}

static int look_at_threads(struct making *making)
{
    struct report *report = making->report;
    for (size_t i = 0; i < report->view->sample_count; i++) {
        const struct profile_sample *sample = &report->view->samples[i];
        int err = sample_is_idle(sample) ? 0 : get_thread(report, sample, &making->thread_of[i]);
        if (err)
            return err;
        if (sample_is_idle(sample)) {
            report->elapsed_idle_ns += sample->elapsed_ns;
            continue;
        }
        struct report_thread *thread = &report->threads[making->thread_of[i]];
        thread->never_moved = thread->never_moved && sample->never_moved;
        add_time(&thread->times, sample, false);
        if (making->lock_frame[sample->stack] == NO_LOCK && waits_for_work(report->profile, sample))
            thread->for_work_ns += sample->time_ns;
    }
    return 0;
}

/* A thread that waits for a lock is never idle: it has something to do. */
static bool is_idle(const struct making *making, const struct profile_sample *sample,
                    const struct report_thread *thread)
{
    if (sample->state != THREAD_SLEEPING || making->lock_frame[sample->stack] != NO_LOCK)
        return false;
    uint64_t own_ns = thread->times.all_ns - thread->times.state_ns[FGPROF_STATE_RUNNABLE];
    return thread->never_moved ||
           (waits_for_work(making->report->profile, sample) &&
            100 * (double)thread->for_work_ns >= IDLE_SHARE_PERCENT * (double)own_ns);
}

int report_label_of_call(struct labels *labels, const struct fgprof_profile *profile,
                         const struct profile_sample *sample, uint32_t *ret_label)
{
    struct buffer frame = {0};
    state_append_frame(&frame, profile, sample);
    int err = frame.error;
    if (!err) {
        frame.bytes[frame.length - 1] = '\0'; /* the frame is in brackets */
        err = label_add(labels, frame.bytes + 1, ret_label);
    }
    buffer_free(&frame);
    return err;
}

static int add_use(struct report *report, const struct report_use *use)
{
    struct report_use row = *use;
    uint32_t number;
    row.time_ns = 0;
    int err = INDEX_INTERN(&report->use_index, REPORT_USE_KEY_BYTES, &row, &report->uses,
                           &report->use_count, &report->use_capacity, &number);
    if (!err)
        report->uses[number].time_ns += use->time_ns;
    return err;
}

/* Adds time that the sample's thread spent at the end of its first `depth` labels. */
static int add_time_there(struct making *making, struct report_use *use, size_t depth)
{
    struct report *report = making->report;
    if (!use->time_ns)
        return 0;
    int err = call_tree_add(&report->trees[use->activity], making->labelled.labels, depth,
                            use->time_ns, &use->node);
    return err ? err : add_use(report, use);
}

static int add_sample(struct making *making, const struct profile_sample *sample, uint32_t thread)
{
    struct report *report = making->report;
    struct labelled_stack *labelled = &making->labelled;
    struct report_use use = {.thread = thread, .time_ns = sample->time_ns};
    struct report_use elapsed = {
        .activity = REPORT_ELAPSED, .thread = thread, .time_ns = sample->elapsed_ns};
    bool idle = is_idle(making, sample, &report->threads[thread]);
    add_time(&report->times, sample, idle);
    add_time(&report->processes[report->threads[thread].process].times, sample, idle);
    report->threads[thread].times.idle_ns += idle ? sample->time_ns : 0;
    int err = labels_of_stack(&report->labels, report->profile,
                              &report->profile->stacks[sample->stack], labelled);
    if (!err)
        err = report_label_of_call(&report->labels, report->profile, sample, &elapsed.call);
    size_t depth = making->depth[sample->stack];
    use.activity = sample->state == THREAD_RUNNING    ? REPORT_RUNNING
                   : sample->state == THREAD_RUNNABLE ? REPORT_RUNNABLE
                   : idle                             ? REPORT_IDLE
                                                      : REPORT_WAITING;
    if (use.activity >= REPORT_WAITING && sample->state != THREAD_UNKNOWN) {
        use.is_lock = making->lock_frame[sample->stack] != NO_LOCK;
        use.call = elapsed.call;
    }
    if (!err && sample->state != THREAD_UNKNOWN)
        err = add_time_there(making, &use, depth);
    return err ? err : add_time_there(making, &elapsed, depth);
}

/* Inserts the node into the rows, if it has self time: the most first, equal ones in the order in
 * which they were found. */
static void place_node(const struct call_tree *tree, uint32_t node, struct report_paths *paths)
{
    size_t at = paths->count;
    if (!tree->nodes[node].self_ns)
        return;
    while (at && tree->nodes[paths->rows[at - 1].node].self_ns < tree->nodes[node].self_ns)
        at--;
    paths->left_out += paths->count == REPORT_PATHS_MAX;
    array_place(paths->rows, &paths->count, REPORT_PATHS_MAX, at,
                (struct report_path){.node = node});
}

/* Counts the row's threads and chooses its call and thread. `seen`: for each thread, the number of
 * the last row that counted it; this row is `stamp`. */
static void look_at_row(const struct report *report, enum report_activity activity,
                        struct report_path *row, uint32_t *seen, uint32_t stamp)
{
    uint64_t longest_ns = 0;
    for (size_t i = 0; i < report->use_count; i++) {
        const struct report_use *use = &report->uses[i];
        if (use->activity != (uint32_t)activity || use->node != row->node)
            continue;
        row->threads += seen[use->thread] != stamp;
        row->unmoved += seen[use->thread] != stamp && report->threads[use->thread].never_moved;
        seen[use->thread] = stamp;
        if (use->time_ns <= longest_ns)
            continue;
        longest_ns = use->time_ns;
        row->call = use->call;
        row->thread = use->thread;
    }
}

static int choose_paths(struct report *report)
{
    uint32_t stamp = 0, *seen = calloc(report->thread_count + 1, sizeof *seen);
    if (!seen)
        return -ENOMEM;
    for (int activity = 0; activity < REPORT_ACTIVITY_COUNT; activity++) {
        struct report_paths *paths = &report->paths[activity];
        for (size_t i = 0; i < report->trees[activity].count; i++)
            place_node(&report->trees[activity], (uint32_t)i, paths);
        for (size_t i = 0; i < paths->count; i++)
            look_at_row(report, (enum report_activity)activity, &paths->rows[i], seen, ++stamp);
    }
    free(seen);
    return 0;
}

static int make_trees(struct making *making)
{
    struct report *report = making->report;
    int err = 0;
    for (size_t i = 0; i < report->view->sample_count && !err; i++) {
        if (!sample_is_idle(&report->view->samples[i]))
            err = add_sample(making, &report->view->samples[i], making->thread_of[i]);
    }
    for (size_t i = 0; i < report->thread_count; i++)
        report->idle_threads += report_is_idle(&report->threads[i]);
    return err ? err : choose_paths(report);
}

static int count_samples(struct report *report)
{
    struct making making = {
        .report = report,
        .thread_of = calloc(report->view->sample_count + 1, sizeof *making.thread_of),
        .lock_frame = calloc(report->profile->stack_count + 1, sizeof *making.lock_frame),
        .depth = calloc(report->profile->stack_count + 1, sizeof *making.depth),
        .taker = calloc(report->profile->stack_count + 1, sizeof *making.taker),
    };
    bool is_made = making.thread_of && making.lock_frame && making.depth && making.taker &&
                   !look_at_stacks(&making) && !look_at_threads(&making) && !make_trees(&making);
    free(making.thread_of);
    free(making.lock_frame);
    free(making.depth);
    free(making.taker);
    free(making.labelled.labels);
    return is_made ? 0 : -ENOMEM;
}

int report_make(struct report *report)
{
    report->process_count = report->profile->process_count ? report->profile->process_count : 1;
    report->processes = calloc(report->process_count, sizeof *report->processes);
    if (!report->processes || labels_init(&report->labels, report->profile) ||
        count_samples(report) || report_find_modules(report) || report_find_holders(report) ||
        report_find(report))
        return -ENOMEM;
    return report_choose_next(report);
}

static void free_holds(struct report_holds *holds)
{
    for (size_t i = 0; i < holds->count; i++) {
        free(holds->rows[i].owner_path);
        free(holds->rows[i].waiter_path);
    }
}

void report_free(struct report *report)
{
    labels_free(&report->labels);
    for (size_t i = 0; i < REPORT_ACTIVITY_COUNT; i++)
        call_tree_free(&report->trees[i]);
    for (size_t i = 0; i < report->finding_count; i++) {
        free(report->findings[i].text);
        free(report->findings[i].detail);
    }
    free_holds(&report->held);
    free_holds(&report->woken);
    free_holds(&report->cpus);
    free(report->uses);
    index_free(&report->use_index);
    free(report->threads);
    index_free(&report->thread_index);
    free(report->processes);
    free(report->next);
}

void report_append_host(struct buffer *buffer, const struct fgprof_profile *profile)
{
    if (!profile->host)
        return;
    buffer_puts(buffer, " on ");
    name_append_short(buffer, profile->host, REPORT_NAME_COLUMNS);
}

void report_append_process(struct buffer *buffer, const struct report *report, uint32_t process)
{
    if (process >= report->profile->process_count) {
        buffer_puts(buffer, "[unnamed]");
        return;
    }
    const struct profile_process *row = &report->profile->processes[process];
    const char *name = strings_get(&report->profile->strings, row->name);
    name_append_short(buffer, *name ? name : "[unnamed]", REPORT_NAME_COLUMNS);
    if (row->pid)
        buffer_print(buffer, "/%" PRIu32, row->pid);
}

const char *report_thread_word(const struct report_thread *thread)
{
    return thread->is_goroutine ? "goroutine" : "thread";
}

void report_append_thread(struct buffer *buffer, const struct report *report,
                          const struct report_thread *thread)
{
    buffer_puts(buffer, "\"");
    name_append_short(buffer, strings_get(&report->profile->strings, thread->name),
                      REPORT_NAME_COLUMNS);
    buffer_puts(buffer, "\"");
    if (thread->tid)
        buffer_print(buffer, "/%" PRIu32, thread->tid);
    if (report->process_count > 1) {
        buffer_puts(buffer, " of ");
        report_append_process(buffer, report, thread->process);
    }
}

void report_append_path(struct buffer *buffer, const struct report *report,
                        enum report_activity activity, uint32_t node)
{
    call_tree_append_path(buffer, &report->trees[activity], node, &report->labels);
}

double report_parallel_percent(const struct report *report, size_t first, size_t last)
{
    const struct fgprof_profile *profile = report->profile;
    uint64_t part_ns = 0, all_ns = 0;
    for (size_t i = 0; i < profile->parallel_count; i++) {
        all_ns += profile->parallel_ns[i];
        part_ns += i >= first && i <= last ? profile->parallel_ns[i] : 0;
    }
    return report_percent(part_ns, all_ns);
}

static bool is_busier(const struct report_times *one, const struct report_times *other)
{
    const struct report_times *both[] = {one, other};
    uint64_t wants_cpu_ns[2], busy_ns[2];
    for (size_t i = 0; i < 2; i++) {
        wants_cpu_ns[i] =
            both[i]->state_ns[FGPROF_STATE_RUNNING] + both[i]->state_ns[FGPROF_STATE_RUNNABLE];
        busy_ns[i] = both[i]->all_ns - both[i]->idle_ns;
    }
    if (wants_cpu_ns[0] != wants_cpu_ns[1])
        return wants_cpu_ns[0] > wants_cpu_ns[1];
    return busy_ns[0] > busy_ns[1];
}

size_t report_busiest(const struct report *report, uint32_t *ret_threads, size_t max)
{
    size_t count = 0;
    for (uint32_t i = 0; i < report->thread_count; i++) {
        const struct report_times *times = &report->threads[i].times;
        size_t at = count;
        while (at && is_busier(times, &report->threads[ret_threads[at - 1]].times))
            at--;
        if (!report_is_idle(&report->threads[i]))
            array_place(ret_threads, &count, max, at, i);
    }
    return count;
}

static void output(const struct fgprof_profile *profile, const struct profile_view *view,
                   void (*write)(const struct report *report, struct sink *sink), struct sink *sink)
{
    struct report report = {.profile = profile, .view = view};
    int err = report_make(&report);
    if (err)
        sink->error = err;
    else
        write(&report, sink);
    report_free(&report);
}

void output_report(const struct fgprof_profile *profile, const struct profile_view *view,
                   struct sink *sink)
{
    if (profile_is_of_objects(profile))
        report_objects(profile, view, false, sink);
    else
        output(profile, view, report_text, sink);
}

void output_report_json(const struct fgprof_profile *profile, const struct profile_view *view,
                        struct sink *sink)
{
    if (profile_is_of_objects(profile))
        report_objects(profile, view, true, sink);
    else
        output(profile, view, report_json, sink);
}
