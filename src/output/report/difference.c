/* How the time of two profiles differs, in words: what grew most, and what shrank. */
#include "output/report/paths.h"
#include "output/report/report.h"
#include "output/output.h"
#include "output/state.h"
#include "base/utf8.h"
#include "base/array.h"

#include <stdlib.h>

#define CALL_COLUMNS 24
#define COMMAND_COLUMNS 100
#define WORTH_PERCENT 1 /* of the recording, in thread time: less is not shown */

/* What threads did at one place. */
struct change {
    uint32_t node, call;
    double seconds[2]; /* before and after */
};

struct difference {
    const struct profile_pair *pair;
    double scale;         /* of the time before */
    struct labels labels; /* of both profiles */
    struct call_tree tree;
    struct change *changes;
    size_t count, capacity;
    struct index index;
    double all[2], states[2][FGPROF_STATE_COUNT];
};

static const struct fgprof_profile *profile_of(const struct difference *difference, int side)
{
    return side ? difference->pair->after : difference->pair->before;
}

/* Finds the sample's place in the tree of both profiles. `own`: the labels of this one's. */
static int find_node(struct difference *difference, struct labels *own,
                     const struct fgprof_profile *profile, const struct profile_sample *sample,
                     struct labelled_stack *labelled, uint32_t *ret_node)
{
    int err = labels_of_stack(own, profile, &profile->stacks[sample->stack], labelled);
    for (size_t i = 0; i < labelled->program_depth && !err; i++)
        err = label_add(&difference->labels, label_text(own, labelled->labels[i]),
                        &labelled->labels[i]);
    return err ? err
               : call_tree_add(&difference->tree, labelled->labels, labelled->program_depth, 0,
                               ret_node);
}

static int add_sample(struct difference *difference, struct labels *own, int side,
                      const struct profile_sample *sample, struct labelled_stack *labelled)
{
    const struct fgprof_profile *profile = profile_of(difference, side);
    struct change change = {0};
    uint32_t number;
    double seconds = (double)sample->time_ns / 1e9 * (side ? 1 : difference->scale);
    if (find_node(difference, own, profile, sample, labelled, &change.node) ||
        report_label_of_call(&difference->labels, profile, sample, &change.call) ||
        INDEX_INTERN(&difference->index, offsetof(struct change, seconds), &change,
                     &difference->changes, &difference->count, &difference->capacity, &number))
        return -ENOMEM;
    difference->changes[number].seconds[side] += seconds;
    difference->states[side][sample_state(sample)] += seconds;
    difference->all[side] += seconds;
    return 0;
}

static int add_profile(struct difference *difference, int side)
{
    const struct profile_view *view =
        side ? &difference->pair->view_after : &difference->pair->view_before;
    struct labelled_stack labelled = {0};
    struct labels own;
    int err = labels_init(&own, profile_of(difference, side));
    for (size_t i = 0; i < view->sample_count && !err; i++) {
        if (!sample_is_idle(&view->samples[i]))
            err = add_sample(difference, &own, side, &view->samples[i], &labelled);
    }
    labels_free(&own);
    free(labelled.labels);
    return err;
}

static double change_of(const struct change *change)
{
    return change->seconds[1] - change->seconds[0];
}

static int most_grown_first(const void *a, const void *b)
{
    double left = change_of(a), right = change_of(b);
    return ORDER(right, left);
}

static int most_shrunk_first(const void *a, const void *b)
{
    return most_grown_first(b, a);
}

static void append_change(struct buffer *buffer, const struct difference *difference,
                          const struct change *change)
{
    buffer_print(buffer, "%10.2f %9.2f %+9.2f  ", change->seconds[0], change->seconds[1],
                 change_of(change));
    size_t from = buffer->length;
    name_append_short(buffer, label_text(&difference->labels, change->call), CALL_COLUMNS);
    size_t used = buffer->error ? 0 : utf8_columns(buffer->bytes + from, buffer->length - from);
    buffer_print(buffer, "%*s", CALL_COLUMNS + 2 - (int)used, "");
}

/* Shows the first rows that changed by enough. `sign`: 1 or -1, of those that grew or shrank. */
static void append_changes(struct buffer *buffer, const struct difference *difference,
                           const char *title, double sign)
{
    double least =
        WORTH_PERCENT / 100.0 * report_seconds(difference->pair->after->summary.elapsed_ns);
    uint32_t nodes[ROW_PATHS_MAX];
    struct row_paths paths;
    size_t count = 0;
    while (count < difference->count && count < ROW_PATHS_MAX &&
           sign * change_of(&difference->changes[count]) >= least) {
        nodes[count] = difference->changes[count].node;
        count++;
    }
    buffer_print(buffer, "\n%s%s\n", title, count ? ":" : ": nothing");
    if (!count)
        return;
    row_paths_make(&paths, &difference->tree, &difference->labels, nodes, count);
    buffer->error = paths.error ? paths.error : buffer->error;
    buffer_print(buffer, "  BEFORE s   AFTER s  CHANGE s  %-*s", CALL_COLUMNS + 2, "STATE OR CALL");
    row_paths_append_title(buffer, &paths);
    for (size_t i = 0; i < count && !paths.error; i++) {
        append_change(buffer, difference, &difference->changes[i]);
        buffer_write(buffer, paths.rows[i].text.bytes, paths.rows[i].text.length);
        buffer_puts(buffer, "\n");
    }
    row_paths_free(&paths);
}

static void append_profile(struct buffer *buffer, const struct difference *difference, int side)
{
    const struct fgprof_profile *profile = profile_of(difference, side);
    const char *command = profile_recorded_by(profile);
    buffer_print(buffer, "  %s %.2f s, ",
                 side ? "after: " : "before:", report_seconds(profile->summary.elapsed_ns));
    name_append_short(buffer, profile->read_from ? profile->read_from : "", REPORT_FILE_COLUMNS);
    buffer_puts(buffer, ", recorded by: ");
    name_append_short(buffer, *command ? command : "not known", COMMAND_COLUMNS);
    buffer_puts(buffer, "\n");
}

static void append_head(struct buffer *buffer, const struct difference *difference)
{
    static const struct {
        enum fgprof_state state;
        const char *name;
    } rows[] = {{FGPROF_STATE_RUNNING, "running"},
                {FGPROF_STATE_RUNNABLE, "waiting for a CPU"},
                {FGPROF_STATE_WAITING, "asleep"}};
    const double *before = difference->states[0], *after = difference->states[1];
    buffer_puts(buffer, "fgprof-c diff\n");
    append_profile(buffer, difference, 0);
    append_profile(buffer, difference, 1);
    if (difference->scale != 1)
        buffer_print(buffer, "  normalized: times before are multiplied by %.3g\n",
                     difference->scale);
    buffer_print(buffer, "\nThread time: %.2f s before, %.2f s after\n", difference->all[0],
                 difference->all[1]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        buffer_print(buffer, "%10.2f %9.2f %+9.2f  %s\n", before[rows[i].state],
                     after[rows[i].state], after[rows[i].state] - before[rows[i].state],
                     rows[i].name);
}

static uint64_t total_ns(const struct profile_view *view)
{
    uint64_t sum_ns = 0;
    for (size_t i = 0; i < view->sample_count; i++)
        sum_ns += view->samples[i].time_ns;
    return sum_ns;
}

static void append_all(struct buffer *buffer, struct difference *difference)
{
    append_head(buffer, difference);
    array_sort(difference->changes, difference->count, most_grown_first);
    append_changes(buffer, difference, "Grown", 1);
    array_sort(difference->changes, difference->count, most_shrunk_first);
    append_changes(buffer, difference, "Shrunk", -1);
}

void output_report_difference(const struct profile_pair *pair, bool is_normalized,
                              struct sink *sink)
{
    uint64_t before_ns = total_ns(&pair->view_before), after_ns = total_ns(&pair->view_after);
    struct difference difference = {
        .pair = pair,
        .scale = is_normalized && before_ns ? (double)after_ns / (double)before_ns : 1,
    };
    struct buffer buffer = {0};
    int err = labels_init(&difference.labels, pair->before);
    for (int side = 0; side < 2 && !err; side++)
        err = add_profile(&difference, side);
    if (!err)
        append_all(&buffer, &difference);
    sink->error = err ? err : sink->error;
    sink_put(sink, &buffer);
    labels_free(&difference.labels);
    call_tree_free(&difference.tree);
    free(difference.changes);
    index_free(&difference.index);
}
