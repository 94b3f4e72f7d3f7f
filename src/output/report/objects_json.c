/* The report of objects as JSON. Keys are stable; new contents get new keys. */
#include "output/report/objects.h"
#include "output/json.h"
#include "output/report/report.h"

#define VERSION 1

#define NAME_COLUMNS 120
#define COMMAND_COLUMNS 1000

static const char *const measures[OBJECT_MEASURES] = {
    [OBJECTS_MADE] = "objects_made",
    [BYTES_MADE] = "bytes_made",
    [OBJECTS_IN_USE] = "objects_in_use",
    [BYTES_IN_USE] = "bytes_in_use",
};

static void put_amounts(struct json *json, const double amounts[OBJECT_MEASURES])
{
    for (int i = 0; i < OBJECT_MEASURES; i++) {
        json_print(json, measures[i], "%.0f", amounts[i]);
    }
}

static void put_recording(struct json *json, const struct fgprof_profile *profile)
{
    const struct profile_objects *objects = &profile->objects;
    json_begin(json, "recording", '{');
    report_json_string(json, "command", profile_recorded_by(profile), COMMAND_COLUMNS);
    report_json_string(json, "reason", profile->reason ? profile->reason : "", COMMAND_COLUMNS);
    json_number(json, "start_time_ns", profile->start_time_ns);
    json_number(json, "elapsed_ns", profile->summary.elapsed_ns);
    json_number(json, "rate", objects->rate);
    json_number(json, "made_lost", objects->made_lost);
    json_number(json, "gone_lost", objects->gone_lost);
    json_number(json, "resident_peak", objects->resident_peak);
    json_number(json, "heap_arena", objects->heap_arena);
    json_number(json, "heap_mmap", objects->heap_mmap);
    json_number(json, "heap_used", objects->heap_used);
    json_number(json, "heap_free", objects->heap_free);
    json_bool(json, "allocator_is_own", profile->summary.allocator_is_own);
    json_end(json, '}');
}

static void put_stacks(struct json *json, const struct objects_report *report, const char *key,
                       enum object_measure measure, bool is_least)
{
    struct object_rows rows = objects_top_stacks(report, measure, is_least);
    json_begin(json, key, '{');
    json_number(json, "left_out", rows.left_out);
    json_begin(json, "stacks", '[');
    for (size_t i = 0; i < rows.count; i++) {
        const struct object_sums *sums = &report->stacks[rows.rows[i].at];
        json_begin(json, NULL, '{');
        put_amounts(json, sums->own);
        report_json_string(json, "thread",
                           strings_get(&report->profile->strings, sums->thread_name), NAME_COLUMNS);
        report_json_frames(json, &report->tree, &report->labels, rows.rows[i].at);
        json_end(json, '}');
    }
    json_end(json, ']');
    json_end(json, '}');
}

static void put_functions(struct json *json, const struct objects_report *report,
                          enum object_measure measure)
{
    struct object_rows rows = objects_top_functions(report, measure);
    json_begin(json, "functions", '[');
    for (size_t i = 0; i < rows.count; i++) {
        const struct object_sums *sums = &report->functions[rows.rows[i].at];
        json_begin(json, NULL, '{');
        report_json_string(json, "name", label_text(&report->labels, rows.rows[i].at),
                           NAME_COLUMNS);
        json_begin(json, "own", '{');
        put_amounts(json, sums->own);
        json_end(json, '}');
        json_begin(json, "total", '{');
        put_amounts(json, sums->total);
        json_end(json, '}');
        json_end(json, '}');
    }
    json_end(json, ']');
}

void report_objects_json(const struct objects_report *report, struct sink *sink)
{
    const struct fgprof_profile *profile = report->profile;
    struct json json = {.sink = sink};
    struct object_type types[OBJECT_TYPES_MAX];
    objects_types(profile, types);
    enum object_measure measure = types[objects_main_type(profile)].measure;
    json_begin(&json, NULL, '{');
    json_number(&json, "version", VERSION);
    report_json_string(&json, "kind", objects_kind_name(profile), NAME_COLUMNS);
    json_bool(&json, "is_difference", profile->is_difference);
    put_recording(&json, profile);
    if (!profile->is_difference) {
        json_number(&json, "seen", report->seen);
        json_number(&json, "seen_cut", report->seen_cut);
        json_number(&json, "seen_unnamed", report->seen_unnamed);
    }
    json_begin(&json, "all", '{');
    put_amounts(&json, report->all.own);
    json_end(&json, '}');
    put_stacks(&json, report, "most", measure, false);
    put_stacks(&json, report, "least", measure, true);
    if (objects_are_of_heap(profile))
        put_stacks(&json, report, "most_made", BYTES_MADE, false);
    put_functions(&json, report, measure);
    json_end(&json, '}');
    sink_write(sink, "\n", 1);
}
