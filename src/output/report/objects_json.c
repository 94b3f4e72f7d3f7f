/* The report of objects as JSON. Keys stay as they are; what is new gets new ones. */
#include "output/report/objects.h"
#include "output/json.h"
#include "output/report/report.h"

#include <inttypes.h>

#define VERSION 1

#define NAME_COLUMNS 120
#define COMMAND_COLUMNS 1000

static const char *const measures[OBJECT_MEASURES] = {
    [OBJECTS_MADE] = "objects_made",
    [BYTES_MADE] = "bytes_made",
    [OBJECTS_IN_USE] = "objects_in_use",
    [BYTES_IN_USE] = "bytes_in_use",
};

static void put_amounts(struct sink *sink, const double amounts[OBJECT_MEASURES])
{
    for (int i = 0; i < OBJECT_MEASURES; i++) {
        json_key(sink, measures[i], i == 0);
        sink_print(sink, "%.0f", amounts[i]);
    }
}

static void put_recording(struct sink *sink, const struct fgprof_profile *profile)
{
    const struct profile_objects *objects = &profile->objects;
    json_key(sink, "recording", false);
    sink_print(sink, "{");
    report_json_string(sink, "command", profile_recorded_by(profile), COMMAND_COLUMNS, true);
    report_json_string(sink, "reason", profile->reason ? profile->reason : "", COMMAND_COLUMNS,
                       false);
    json_number(sink, "start_time_ns", profile->start_time_ns, false);
    json_number(sink, "elapsed_ns", profile->summary.elapsed_ns, false);
    json_number(sink, "rate", objects->rate, false);
    json_number(sink, "made_lost", objects->made_lost, false);
    json_number(sink, "gone_lost", objects->gone_lost, false);
    json_number(sink, "resident_peak", objects->resident_peak, false);
    json_number(sink, "heap_arena", objects->heap_arena, false);
    json_number(sink, "heap_mmap", objects->heap_mmap, false);
    json_number(sink, "heap_used", objects->heap_used, false);
    json_number(sink, "heap_free", objects->heap_free, false);
    json_key(sink, "allocator_is_own", false);
    sink_print(sink, profile->summary.allocator_is_own ? "true" : "false");
    sink_print(sink, "}");
}

static void put_stacks(struct sink *sink, const struct objects_report *report, const char *key,
                       enum object_measure measure, bool is_least)
{
    struct object_rows rows = objects_top_stacks(report, measure, is_least);
    json_key(sink, key, false);
    sink_print(sink, "{");
    json_number(sink, "left_out", rows.left_out, true);
    json_key(sink, "stacks", false);
    for (size_t i = 0; i < rows.count; i++) {
        const struct object_sums *sums = &report->stacks[rows.rows[i]];
        sink_print(sink, i ? ",{" : "[{");
        put_amounts(sink, sums->own);
        report_json_string(sink, "thread",
                           strings_get(&report->profile->strings, sums->thread_name), NAME_COLUMNS,
                           false);
        report_json_frames(sink, &report->tree, &report->labels, rows.rows[i]);
        sink_print(sink, "}");
    }
    sink_print(sink, rows.count ? "]}" : "[]}");
}

static void put_functions(struct sink *sink, const struct objects_report *report,
                          enum object_measure measure)
{
    struct object_rows rows = objects_top_functions(report, measure);
    json_key(sink, "functions", false);
    sink_print(sink, "[");
    for (size_t i = 0; i < rows.count; i++) {
        const struct object_sums *sums = &report->functions[rows.rows[i]];
        sink_print(sink, i ? ",{" : "{");
        report_json_string(sink, "name", label_text(&report->labels, rows.rows[i]), NAME_COLUMNS,
                           true);
        json_key(sink, "own", false);
        sink_print(sink, "{");
        put_amounts(sink, sums->own);
        sink_print(sink, "}");
        json_key(sink, "total", false);
        sink_print(sink, "{");
        put_amounts(sink, sums->total);
        sink_print(sink, "}}");
    }
    sink_print(sink, "]");
}

void report_objects_json(const struct objects_report *report, struct sink *sink)
{
    const struct fgprof_profile *profile = report->profile;
    struct object_type types[OBJECT_TYPES_MAX];
    objects_types(profile, types);
    enum object_measure measure = types[objects_main_type(profile)].measure;
    sink_print(sink, "{\"version\":%d", VERSION);
    report_json_string(sink, "kind", objects_kind_name(profile), NAME_COLUMNS, false);
    json_key(sink, "is_difference", false);
    sink_print(sink, profile->is_difference ? "true" : "false");
    put_recording(sink, profile);
    json_number(sink, "seen", report->seen, false);
    json_number(sink, "seen_cut", report->seen_cut, false);
    json_number(sink, "seen_unnamed", report->seen_unnamed, false);
    json_key(sink, "all", false);
    sink_print(sink, "{");
    put_amounts(sink, report->all.own);
    sink_print(sink, "}");
    put_stacks(sink, report, "most", measure, false);
    put_stacks(sink, report, "least", measure, true);
    if (objects_are_of_heap(profile))
        put_stacks(sink, report, "most_made", BYTES_MADE, false);
    put_functions(sink, report, measure);
    sink_print(sink, "}\n");
}
