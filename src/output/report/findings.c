/* The findings: where time is lost, the most first, and what makes the recording poor. */
#include "output/report/report.h"
#include "wait/resource.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define SATURATED_PERCENT 90    /* of the recording, running or waiting for a CPU */
#define WORTH_PERCENT 5         /* of the recording, in thread time: less is no finding */
#define CPU_SHORTAGE_PERCENT 25 /* of the recording, and of what threads want a CPU for */
#define LATE_PERCENT 5
#define CUT_PERCENT 5
#define UNNAMED_PERCENT 25

#define DEADLOCK_COLUMNS 400

/* The most findings of each kind. There is one each of the eight other kinds. */
#define SATURATED_MAX 2
#define LOCKS_MAX 2
#define RUNNING_MAX 1
#define WAITING_MAX 2
_Static_assert(SATURATED_MAX + LOCKS_MAX + RUNNING_MAX + WAITING_MAX + 8 <= REPORT_FINDINGS_MAX,
               "all findings have room");

struct finding {
    const char *kind;
    uint64_t time_ns;
    bool is_first;
    bool is_of_machine; /* of no thread's doing: it comes behind those that are */
    uint32_t function;
    struct buffer text, detail;
};

/* Takes over the finding's texts. Findings about threads are added first and sorted by time. There
 * is always room: see the numbers above. */
static int add(struct report *report, struct finding *finding)
{
    size_t at = report->finding_count;
    int err = finding->text.error ? finding->text.error : finding->detail.error;
    if (err || at == REPORT_FINDINGS_MAX) {
        buffer_free(&finding->text);
        buffer_free(&finding->detail);
        return err;
    }
    if (finding->is_first)
        at = 0;
    while (!finding->is_of_machine && at && report->findings[at - 1].time_ns < finding->time_ns)
        at--;
    array_place(report->findings, &report->finding_count, REPORT_FINDINGS_MAX, at,
                (struct report_finding){finding->kind, finding->time_ns, finding->function,
                                        finding->text.bytes, finding->detail.bytes});
    return 0;
}

static bool is_worth_it(const struct report *report, uint64_t time_ns)
{
    return time_ns &&
           100 * (double)time_ns >= WORTH_PERCENT * (double)report->profile->summary.elapsed_ns;
}

static uint32_t leaf_of(const struct report *report, enum report_activity activity, uint32_t node)
{
    return report->trees[activity].nodes[node].label;
}

/* ---- Threads that keep a CPU busy ---- */

static uint64_t wanted_cpu_ns(const struct report_times *times)
{
    return times->state_ns[FGPROF_STATE_RUNNING] + times->state_ns[FGPROF_STATE_RUNNABLE];
}

/* A row may stand for several threads with the same name. */
static bool is_saturated(const struct report *report, const struct report_thread *thread)
{
    double elapsed_ns = (double)report->profile->summary.elapsed_ns;
    bool is_one = thread->tid || (double)thread->times.all_ns <= 1.05 * elapsed_ns;
    return is_one && elapsed_ns > 0 &&
           100 * (double)wanted_cpu_ns(&thread->times) > SATURATED_PERCENT * elapsed_ns;
}

/* Where the thread ran most, or NULL. */
static const struct report_use *longest_run(const struct report *report, uint32_t thread)
{
    const struct report_use *found = NULL;
    for (size_t i = 0; i < report->use_count; i++) {
        const struct report_use *use = &report->uses[i];
        if (use->activity == REPORT_RUNNING && use->thread == thread &&
            (!found || use->time_ns > found->time_ns))
            found = use;
    }
    return found;
}

static int add_saturated(struct report *report, uint32_t example, size_t count, uint64_t time_ns)
{
    const struct report_thread *thread = &report->threads[example];
    const struct report_times *times = &thread->times;
    const struct report_use *longest = longest_run(report, example);
    uint64_t elapsed_ns = report->profile->summary.elapsed_ns;
    struct finding finding = {.kind = "saturated_thread", .time_ns = time_ns};
    buffer_print(&finding.text, "%s ", report_thread_word(thread));
    report_append_thread(&finding.text, report, thread);
    buffer_print(&finding.text, " keeps a CPU busy: %.1f %% running, %.1f %% waiting for a CPU",
                 report_percent(times->state_ns[FGPROF_STATE_RUNNING], elapsed_ns),
                 report_percent(times->state_ns[FGPROF_STATE_RUNNABLE], elapsed_ns));
    if (count > 1)
        buffer_print(&finding.text, "; so do %zu more of that name", count - 1);
    if (longest) {
        finding.function = leaf_of(report, REPORT_RUNNING, longest->node);
        buffer_print(&finding.detail, "%.1f %% of its running time: ",
                     report_percent(longest->time_ns, times->state_ns[FGPROF_STATE_RUNNING]));
        report_append_path(&finding.detail, report, REPORT_RUNNING, longest->node);
    }
    return add(report, &finding);
}

static int find_saturated(struct report *report)
{
    bool *is_told = calloc(report->thread_count + 1, sizeof *is_told);
    int err = is_told ? 0 : -ENOMEM;
    uint32_t busiest[REPORT_FINDINGS_MAX];
    size_t busy_count = report_busiest(report, busiest, REPORT_FINDINGS_MAX);
    for (size_t i = 0, told = 0; i < busy_count && told < SATURATED_MAX && !err; i++) {
        const struct report_thread *one = &report->threads[busiest[i]];
        uint64_t time_ns = 0;
        size_t alike = 0;
        for (size_t j = 0; j < report->thread_count; j++) {
            const struct report_thread *thread = &report->threads[j];
            if (is_told[j] || thread->process != one->process || thread->name != one->name ||
                !is_saturated(report, thread))
                continue;
            is_told[j] = true;
            time_ns += wanted_cpu_ns(&thread->times);
            alike++;
        }
        told += alike > 0;
        if (alike)
            err = add_saturated(report, busiest[i], alike, time_ns);
    }
    free(is_told);
    return err;
}

/* ---- Locks ---- */

/* Waits for a lock in one function. */
struct lock_wait {
    uint32_t process, function, thread;
    uint32_t node; /* in the tree of waits */
    uint32_t call; /* the label of what it waited in or for */
    uint64_t time_ns;
};

struct lock {
    const struct lock_wait *longest; /* of one thread at one node */
    size_t threads;
    uint64_t time_ns;
};

/* The label of the function that takes the lock. */
static uint32_t lock_user(const struct report *report, uint32_t node)
{
    const struct call_node *nodes = report->trees[REPORT_WAITING].nodes;
    uint32_t at = nodes[node].caller;
    while (at != CALL_TREE_ROOT &&
           label_has_role(&report->labels, nodes[at].label, LABEL_LOCK | LABEL_WRAPPER))
        at = nodes[at].caller;
    return nodes[at != CALL_TREE_ROOT ? at : node].label;
}

static int compare_waits(const void *a, const void *b)
{
    const struct lock_wait *left = a, *right = b;
    int order = ORDER(left->process, right->process);
    if (!order)
        order = ORDER(left->function, right->function);
    if (!order)
        order = ORDER(left->thread, right->thread);
    return order ? order : ORDER(left->node, right->node);
}

/* The caller frees the waits. NULL: no memory. */
static struct lock_wait *collect_lock_waits(const struct report *report, size_t *ret_count)
{
    struct lock_wait *waits = calloc(report->use_count + 1, sizeof *waits);
    size_t count = 0;
    for (size_t i = 0; i < report->use_count && waits; i++) {
        const struct report_use *use = &report->uses[i];
        if (use->is_lock)
            waits[count++] = (struct lock_wait){report->threads[use->thread].process,
                                                lock_user(report, use->node),
                                                use->thread,
                                                use->node,
                                                use->call,
                                                use->time_ns};
    }
    array_sort(waits, count, compare_waits);
    *ret_count = count;
    return waits;
}

/* Sums up the first waits, which are for the same function's lock. Returns how many. */
static size_t sum_lock(const struct lock_wait *waits, size_t count, struct lock *ret_lock)
{
    *ret_lock = (struct lock){.longest = waits};
    size_t i = 0;
    for (; i < count && waits[i].process == waits->process && waits[i].function == waits->function;
         i++) {
        ret_lock->time_ns += waits[i].time_ns;
        ret_lock->threads += !i || waits[i].thread != waits[i - 1].thread;
        if (waits[i].time_ns > ret_lock->longest->time_ns)
            ret_lock->longest = &waits[i];
    }
    return i;
}

static bool is_below(const struct call_tree *tree, uint32_t node, uint32_t function)
{
    for (uint32_t at = node; at != CALL_TREE_ROOT; at = tree->nodes[at].caller) {
        if (tree->nodes[at].label == function)
            return true;
    }
    return false;
}

/* Finds where the function that takes the lock spends its other time, usually while it holds the
 * lock: the use with the most time, summed over threads. `times`: room for each node of the largest
 * tree. */
static void find_user_without_lock(const struct report *report, const struct lock *lock,
                                   uint64_t *times, struct report_use *ret_most)
{
    *ret_most = (struct report_use){0};
    for (uint32_t activity = 0; activity < REPORT_ACTIVITY_COUNT; activity++) {
        const struct call_tree *tree = &report->trees[activity];
        memset(times, 0, tree->count * sizeof *times);
        for (size_t i = 0; i < report->use_count; i++) {
            const struct report_use *use = &report->uses[i];
            if (use->activity != activity || use->is_lock || activity == REPORT_RUNNABLE ||
                report->threads[use->thread].process != lock->longest->process ||
                !is_below(tree, use->node, lock->longest->function))
                continue;
            times[use->node] += use->time_ns;
            if (times[use->node] > ret_most->time_ns) {
                *ret_most = *use;
                ret_most->time_ns = times[use->node];
            }
        }
    }
}

/* "mutex g_lock, which ", or "a lock that " if it has no name. */
static void append_lock(struct buffer *buffer, const struct report *report, uint32_t call)
{
    static const enum resource_kind kinds[] = {RESOURCE_MUTEX, RESOURCE_RWLOCK, RESOURCE_SEMAPHORE};
    const char *name = label_text(&report->labels, call);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const char *kind = resource_kind_name(kinds[i]);
        if (!text_begins(name, kind) || strcmp(name, kind) == 0)
            continue;
        name_append_short(buffer, name, REPORT_FILE_COLUMNS);
        buffer_puts(buffer, ", which ");
        return;
    }
    buffer_puts(buffer, "a lock that ");
}

static int add_lock(struct report *report, const struct lock *lock, uint64_t *times)
{
    struct finding finding = {
        .kind = "lock", .time_ns = lock->time_ns, .function = lock->longest->function};
    struct report_use most;
    const char *user = label_text(&report->labels, lock->longest->function);
    find_user_without_lock(report, lock, times, &most);
    buffer_print(&finding.text, "%zu %s %.2f s for ", lock->threads,
                 lock->threads == 1 ? "thread waits" : "threads wait",
                 report_seconds(lock->time_ns));
    append_lock(&finding.text, report, lock->longest->call);
    name_append_short(&finding.text, user, REPORT_FILE_COLUMNS);
    buffer_puts(&finding.text, " takes");
    if (report->process_count > 1) {
        buffer_puts(&finding.text, ", in ");
        report_append_process(&finding.text, report, lock->longest->process);
    }
    if (is_worth_it(report, most.time_ns)) {
        finding.function = leaf_of(report, (enum report_activity)most.activity, most.node);
        buffer_print(&finding.detail,
                     "while not waiting, mostly in (%.2f s): ", report_seconds(most.time_ns));
        report_append_path(&finding.detail, report, (enum report_activity)most.activity, most.node);
    } else {
        report_append_path(&finding.detail, report, REPORT_WAITING, lock->longest->node);
    }
    return add(report, &finding);
}

static int add_locks(struct report *report, const struct lock_wait *waits, size_t count)
{
    struct lock found[LOCKS_MAX], lock;
    size_t found_count = 0, nodes = 0;
    for (size_t i = 0; i < REPORT_ACTIVITY_COUNT; i++)
        nodes = report->trees[i].count > nodes ? report->trees[i].count : nodes;
    uint64_t *times = calloc(nodes + 1, sizeof *times);
    if (!times)
        return -ENOMEM;
    for (size_t i = 0; i < count;) {
        i += sum_lock(&waits[i], count - i, &lock);
        size_t at = found_count;
        while (at && found[at - 1].time_ns < lock.time_ns)
            at--;
        if (is_worth_it(report, lock.time_ns))
            array_place(found, &found_count, LOCKS_MAX, at, lock);
    }
    int err = 0;
    for (size_t i = 0; i < found_count && !err; i++)
        err = add_lock(report, &found[i], times);
    free(times);
    return err;
}

static int find_locks(struct report *report)
{
    size_t count;
    struct lock_wait *waits = collect_lock_waits(report, &count);
    int err = waits ? add_locks(report, waits, count) : -ENOMEM;
    free(waits);
    return err;
}

/* ---- The largest of the rest ---- */

/* Whether a finding has this path already. */
static bool is_said(const struct report *report, const char *path)
{
    for (size_t i = 0; i < report->finding_count; i++) {
        const char *detail = report->findings[i].detail;
        size_t length = detail ? strlen(detail) : 0, path_length = strlen(path);
        if (length >= path_length && strcmp(detail + length - path_length, path) == 0)
            return true;
    }
    return false;
}

static bool is_for_lock(const struct report *report, uint32_t node)
{
    uint64_t lock_ns = 0;
    for (size_t i = 0; i < report->use_count; i++) {
        const struct report_use *use = &report->uses[i];
        if (use->activity == REPORT_WAITING && use->node == node && use->is_lock)
            lock_ns += use->time_ns;
    }
    return lock_ns > report->trees[REPORT_WAITING].nodes[node].self_ns / 2;
}

static int add_path(struct report *report, enum report_activity activity,
                    const struct report_path *row)
{
    const struct call_node *node = &report->trees[activity].nodes[row->node];
    struct finding finding = {.kind = activity == REPORT_RUNNING ? "hot_path" : "long_wait",
                              .time_ns = node->self_ns,
                              .function = node->label};
    report_append_path(&finding.detail, report, activity, row->node);
    if (finding.detail.bytes && is_said(report, finding.detail.bytes)) {
        buffer_free(&finding.detail);
        return 0;
    }
    const struct report_thread *thread = &report->threads[row->thread];
    if (row->threads > 1)
        buffer_print(&finding.text, "%zu %ss, most of all ", row->threads,
                     report_thread_word(thread));
    else
        buffer_print(&finding.text, "%s ", report_thread_word(thread));
    report_append_thread(&finding.text, report, thread);
    buffer_print(&finding.text, "%s %.2f s",
                 activity == REPORT_RUNNING ? row->threads > 1 ? ", run" : " runs"
                 : row->threads > 1         ? ", wait"
                                            : " waits",
                 report_seconds(node->self_ns));
    if (row->call) {
        buffer_puts(&finding.text, " in ");
        name_append_short(&finding.text, label_text(&report->labels, row->call),
                          REPORT_NAME_COLUMNS);
    }
    buffer_puts(&finding.text, " here:");
    return add(report, &finding);
}

/* Waits for locks have findings of their own. */
static int find_paths(struct report *report, enum report_activity activity, size_t max)
{
    const struct report_paths *paths = &report->paths[activity];
    int err = 0;
    size_t added = 0;
    for (size_t i = 0; i < paths->count && added < max && !err; i++) {
        const struct report_path *row = &paths->rows[i];
        if (!is_worth_it(report, report->trees[activity].nodes[row->node].self_ns))
            break;
        if (activity == REPORT_WAITING && is_for_lock(report, row->node))
            continue;
        size_t before = report->finding_count;
        err = add_path(report, activity, row);
        added += report->finding_count - before;
    }
    return err;
}

/* ---- The machine and the recording ---- */

static int find_cpu_shortage(struct report *report)
{
    uint64_t waited_ns = report->times.state_ns[FGPROF_STATE_RUNNABLE];
    const struct report_paths *paths = &report->paths[REPORT_RUNNABLE];
    struct finding finding = {.kind = "cpu_shortage", .time_ns = waited_ns, .is_of_machine = true};
    uint64_t elapsed_ns = report->profile->summary.elapsed_ns;
    if (!paths->count || report_percent(waited_ns, elapsed_ns) < CPU_SHORTAGE_PERCENT ||
        report_percent(waited_ns, wanted_cpu_ns(&report->times)) < CPU_SHORTAGE_PERCENT)
        return 0;
    buffer_print(&finding.text, "CPU contention: %.2f s waiting for a CPU, ",
                 report_seconds(waited_ns));
    if (report->cpus.count) {
        buffer_print(&finding.text, "%.2f s of it ", report_seconds(report->cpus.rows[0].time_ns));
        report_append_cpu_user(&finding.text, report, &report->cpus.rows[0]);
        buffer_puts(&finding.text, ", ");
    }
    buffer_print(&finding.text, "%.2f s running",
                 report_seconds(report->times.state_ns[FGPROF_STATE_RUNNING]));
    buffer_puts(&finding.detail, "most of that wait: ");
    report_append_path(&finding.detail, report, REPORT_RUNNABLE, paths->rows[0].node);
    return add(report, &finding);
}

void report_append_throttled(struct buffer *buffer, const struct fgprof_summary *summary)
{
    buffer_print(buffer, "throttled %.2f s by its control group's quota",
                 report_seconds(summary->throttled_ns));
    if (summary->quota_millicpu)
        buffer_print(buffer, " of %g %s", (double)summary->quota_millicpu / 1e3,
                     summary->quota_millicpu == 1000 ? "CPU" : "CPUs");
}

static int find_throttling(struct report *report)
{
    const struct fgprof_summary *summary = &report->profile->summary;
    struct finding finding = {.kind = "throttled", .is_of_machine = true};
    if (!is_worth_it(report, summary->throttled_ns))
        return 0;
    report_append_throttled(&finding.text, summary);
    buffer_puts(&finding.detail, "its threads then wait for a CPU, though CPUs may be idle");
    return add(report, &finding);
}

static int find_cut_stacks(struct report *report)
{
    const struct fgprof_summary *summary = &report->profile->summary;
    double share = report_percent(summary->samples_cut, summary->samples);
    struct finding finding = {.kind = "cut_stacks", .is_of_machine = true};
    if (share < CUT_PERCENT)
        return 0;
    buffer_print(&finding.text, "%.1f %% of samples have a cut stack: callers are missing", share);
    if (report->cut_note) {
        buffer_puts(&finding.detail, "most begin with ");
        name_append_short(&finding.detail, strings_get(&report->profile->strings, report->cut_note),
                          REPORT_FILE_COLUMNS);
    }
    return add(report, &finding);
}

/* How generated code gets names, by the file of a runtime. */
static const struct {
    const char *file, *detail;
} namings[] = {
    {"/libjvm.so", "most in code that Java made: it has names after jcmd PID Compiler.perfmap"},
    {"/node", "most in code that node made: it has names with node --perf-basic-prof"},
    {"/nodejs", "most in code that node made: it has names with node --perf-basic-prof"},
    {"", "most in code that was made at run time, and has no perf map"},
};

static bool has_file(const struct fgprof_profile *profile, const char *end)
{
    for (size_t i = 0; i < profile->mapping_count; i++) {
        if (text_ends(strings_get(&profile->strings, profile->mappings[i].path), end))
            return true;
    }
    return false;
}

static void append_naming(struct buffer *buffer, const struct fgprof_profile *profile)
{
    size_t i = 0;
    while (*namings[i].file && !has_file(profile, namings[i].file))
        i++;
    buffer_puts(buffer, namings[i].detail);
}

static int find_unnamed_frames(struct report *report)
{
    const struct fgprof_summary *summary = &report->profile->summary;
    double share = report_percent(summary->samples_unnamed, summary->samples);
    const struct report_module *worst = report->modules;
    struct finding finding = {.kind = "unnamed_frames", .is_of_machine = true};
    if (share < UNNAMED_PERCENT)
        return 0;
    for (size_t i = 1; i < report->module_count; i++)
        worst = report->modules[i].samples_unnamed > worst->samples_unnamed ? &report->modules[i]
                                                                            : worst;
    buffer_print(&finding.text, "%.1f %% of samples have a frame without a symbol", share);
    if (report->samples_generated_unnamed > worst->samples_unnamed) {
        append_naming(&finding.detail, report->profile);
    } else if (worst->samples_unnamed) {
        buffer_puts(&finding.detail, "most in ");
        name_append_short(&finding.detail, strings_get(&report->profile->strings, worst->path),
                          REPORT_FILE_COLUMNS);
    }
    return add(report, &finding);
}

static int find_early_end(struct report *report)
{
    struct finding finding = {.kind = "ended_early", .is_of_machine = true};
    int error = report->profile->summary.error;
    if (!error)
        return 0;
    /* The error may be any number in a file. */
    buffer_print(&finding.text, "sampling ended early, after %.2f s: %s",
                 report_seconds(report->profile->summary.elapsed_ns),
                 strerror(error > -INT_MAX ? abs(error) : INT_MAX));
    return add(report, &finding);
}

static int find_late_ticks(struct report *report)
{
    const struct fgprof_summary *summary = &report->profile->summary;
    double share = report_percent(summary->ticks_late, summary->ticks_planned);
    struct finding finding = {.kind = "late_ticks", .is_of_machine = true};
    if (share < LATE_PERCENT)
        return 0;
    buffer_print(
        &finding.text,
        "%.1f %% of ticks were late, so that the profile is coarse: a lower rate (-F) or a "
        "less busy machine helps",
        share);
    return add(report, &finding);
}

static int find_unreadable(struct report *report)
{
    const struct fgprof_profile *profile = report->profile;
    struct finding finding = {.kind = "unreadable_modules", .is_of_machine = true};
    if (!profile->unreadable_count)
        return 0;
    buffer_print(&finding.text, "%zu %s could not be read, such as ", profile->unreadable_count,
                 profile->unreadable_count == 1 ? "module" : "modules");
    name_append_short(&finding.text, strings_get(&profile->strings, profile->unreadable[0]),
                      REPORT_FILE_COLUMNS);
    return add(report, &finding);
}

/* Comes before all others. */
static int find_deadlocks(struct report *report)
{
    const struct fgprof_profile *profile = report->profile;
    struct finding finding = {.kind = "deadlock", .is_first = true};
    if (!profile->deadlock_count)
        return 0;
    name_append_short(&finding.text, strings_get(&profile->strings, profile->deadlocks[0]),
                      DEADLOCK_COLUMNS);
    if (profile->summary.deadlocks > 1)
        buffer_print(&finding.detail, "and %" PRIu64 " more", profile->summary.deadlocks - 1);
    return add(report, &finding);
}

int report_find(struct report *report)
{
    if (find_saturated(report) || find_locks(report) ||
        find_paths(report, REPORT_RUNNING, RUNNING_MAX) ||
        find_paths(report, REPORT_WAITING, WAITING_MAX) || find_cpu_shortage(report) ||
        find_throttling(report) || find_early_end(report) || find_late_ticks(report) ||
        find_cut_stacks(report) || find_unnamed_frames(report) || find_unreadable(report) ||
        find_deadlocks(report))
        return -ENOMEM;
    return 0;
}
