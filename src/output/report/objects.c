#include "output/report/objects.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

struct making {
    struct objects_report *report;
    struct labelled_stack labelled;
    uint32_t *counted_for; /* by label: the last sample, + 1, that was counted for its function */
    size_t counted_count, counted_capacity;
};

static void add(double sums[OBJECT_MEASURES], const double amounts[OBJECT_MEASURES])
{
    for (int i = 0; i < OBJECT_MEASURES; i++)
        sums[i] += amounts[i];
}

static void add_thread_name(struct object_sums *sums, uint32_t name)
{
    if (!sums->thread_name)
        sums->thread_name = name;
    sums->has_other_names |= name && name != sums->thread_name;
}

/* A recursive function counts once. */
static int add_functions(struct making *making, uint32_t number,
                         const double amounts[OBJECT_MEASURES])
{
    struct objects_report *report = making->report;
    const struct labelled_stack *labelled = &making->labelled;
    size_t labels = report->labels.texts.count;
    if (array_extend(&report->functions, &report->function_count, &report->function_capacity,
                     labels) ||
        array_extend(&making->counted_for, &making->counted_count, &making->counted_capacity,
                     labels))
        return -ENOMEM;
    for (size_t i = 0; i < labelled->depth; i++) {
        uint32_t label = labelled->labels[i];
        if (making->counted_for[label] != number + 1)
            add(report->functions[label].total, amounts);
        making->counted_for[label] = number + 1;
    }
    add(report->functions[labelled->labels[labelled->depth - 1]].own, amounts);
    return 0;
}

static bool is_unnamed(const struct fgprof_profile *profile, const struct profile_stack *stack)
{
    for (size_t i = 0; i < stack->depth; i++) {
        if (!stack_location(profile, stack, i)->line_count)
            return true;
    }
    return false;
}

/* Whether a note at the root says why frames are missing. */
static bool is_cut(const struct fgprof_profile *profile, const struct profile_stack *stack)
{
    if (!stack->depth)
        return true;
    size_t last = stack->first_location + stack->depth - 1;
    return profile->locations[profile->stack_locations[last]].is_note;
}

static int add_sample(struct making *making, uint32_t number)
{
    struct objects_report *report = making->report;
    const struct profile_sample *sample = &report->view->samples[number];
    const struct profile_stack *stack = &report->profile->stacks[sample->stack];
    double amounts[OBJECT_MEASURES];
    uint32_t node;
    for (int i = 0; i < OBJECT_MEASURES; i++)
        amounts[i] = objects_amount(report->profile, sample, (enum object_measure)i);
    if (labels_of_stack(&report->labels, report->profile, stack, &making->labelled) ||
        call_tree_add(&report->tree, making->labelled.labels, making->labelled.depth, 0, &node) ||
        array_extend(&report->stacks, &report->stack_count, &report->stack_capacity,
                     report->tree.count) ||
        add_functions(making, number, amounts))
        return -ENOMEM;
    add(report->stacks[node].own, amounts);
    add(report->all.own, amounts);
    add_thread_name(&report->stacks[node], sample->thread_name);
    report->seen += sample->made;
    report->seen_cut += is_cut(report->profile, stack) ? sample->made : 0;
    report->seen_unnamed += is_unnamed(report->profile, stack) ? sample->made : 0;
    return 0;
}

static int make(struct objects_report *report)
{
    struct making making = {.report = report};
    int err = labels_init(&report->labels, report->profile);
    for (uint32_t i = 0; i < report->view->sample_count && !err; i++)
        err = add_sample(&making, i);
    free(making.labelled.labels);
    free(making.counted_for);
    return err;
}

/* Inserts the row by value, the largest first, equal ones in the order in which they were found. */
static void place(struct object_rows *rows, uint32_t row, double value)
{
    size_t at = rows->count;
    while (at && rows->rows[at - 1].value < value)
        at--;
    rows->left_out += rows->count == OBJECTS_ROWS_MAX;
    array_place(rows->rows, &rows->count, OBJECTS_ROWS_MAX, at, (struct object_row){row, value});
}

struct object_rows objects_top_stacks(const struct objects_report *report,
                                      enum object_measure measure, bool is_least)
{
    struct object_rows rows = {0};
    for (uint32_t i = 0; i < report->tree.count; i++) {
        double value = is_least ? -report->stacks[i].own[measure] : report->stacks[i].own[measure];
        if (value > 0)
            place(&rows, i, value);
    }
    return rows;
}

struct object_rows objects_top_functions(const struct objects_report *report,
                                         enum object_measure measure)
{
    struct object_rows rows = {0};
    for (uint32_t i = 0; i < report->labels.texts.count && report->functions; i++) {
        double value = report->functions[i].own[measure];
        if (value > 0 && !label_has_role(&report->labels, i, LABEL_START))
            place(&rows, i, value);
    }
    return rows;
}

void report_objects(const struct fgprof_profile *profile, const struct profile_view *view,
                    bool is_json, struct sink *sink)
{
    struct objects_report report = {.profile = profile, .view = view};
    int err = make(&report);
    if (err)
        sink->error = err;
    else if (is_json)
        report_objects_json(&report, sink);
    else
        report_objects_text(&report, sink);
    labels_free(&report.labels);
    call_tree_free(&report.tree);
    free(report.stacks);
    free(report.functions);
}
