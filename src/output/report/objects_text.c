/* The report of objects as text: at most 60 lines, without colours. */
#include "output/report/objects.h"
#include "output/report/report.h"

#include <inttypes.h>
#include <stdio.h>

#define COMMAND_COLUMNS 100
#define REASON_COLUMNS 200
#define THREAD_COLUMNS 20

/* Appends "1.5 MiB", at the right of `columns` if it is shorter. `sign` is "+", or "" if only a
 * minus is shown. */
static void append_bytes(struct text_buffer *buffer, double bytes, const char *sign, int columns)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    double shown = bytes < 0 ? -bytes : bytes;
    char text[64];
    for (; shown >= 1023.95 && unit + 1 < sizeof units / sizeof *units; unit++)
        shown /= 1024;
    snprintf(text, sizeof text, "%s%.*f %s", bytes < 0 ? "-" : sign, unit ? 1 : 0, shown,
             units[unit]);
    text_print(buffer, "%*s", columns, text);
}

static void append_amount(struct text_buffer *buffer, double amount, const char *sign, int columns)
{
    char text[64];
    snprintf(text, sizeof text, "%s%.0f", amount > 0 ? sign : "", amount);
    text_print(buffer, "%*s", columns, text);
}

static bool is_of_bytes(enum object_measure measure)
{
    return measure == BYTES_MADE || measure == BYTES_IN_USE;
}

static void append_value(struct text_buffer *buffer, const struct object_sums *sums,
                         enum object_measure measure, const char *sign, int columns)
{
    if (is_of_bytes(measure))
        append_bytes(buffer, sums->own[measure], sign, columns);
    else
        append_amount(buffer, sums->own[measure], sign, columns);
}

/* What stands before what grew in a difference. */
static const char *sign_of(const struct objects_report *report)
{
    return report->profile->is_difference ? "+" : "";
}

static void append_process(struct text_buffer *buffer, const struct fgprof_profile *profile)
{
    const char *name = "";
    if (profile->process_count)
        name = strings_get(&profile->strings, profile->processes[0].name);
    if (profile->process_count > 1) {
        text_print(buffer, "%zu processes", profile->process_count);
        return;
    }
    text_append_short_name(buffer, *name ? name : "[unnamed]", REPORT_NAME_COLUMNS);
    if (profile->process_count)
        text_print(buffer, "/%" PRIu32, profile->processes[0].pid);
}

static void append_totals(struct text_buffer *buffer, const struct objects_report *report)
{
    const struct object_sums *all = &report->all;
    const char *sign = sign_of(report);
    bool is_difference = report->profile->is_difference;
    text_append(buffer, "  ");
    switch (report->profile->kind) {
    case FGPROF_KIND_THREADCREATE:
        append_amount(buffer, all->own[OBJECTS_MADE], sign, 0);
        text_append(buffer, " threads were made");
        break;
    case FGPROF_KIND_CUSTOM:
        text_append(buffer, is_difference ? "change: " : "total: ");
        append_amount(buffer, all->own[OBJECTS_IN_USE], sign, 0);
        break;
    case FGPROF_KIND_GROWTH:
        text_append(buffer, "resident: ");
        append_bytes(buffer, all->own[BYTES_IN_USE], sign, 0);
        text_print(buffer, "; page faults: %.0f", all->own[OBJECTS_MADE]);
        break;
    default:
        text_append(buffer, "in use: ");
        append_bytes(buffer, all->own[BYTES_IN_USE], sign, 0);
        text_append(buffer, " in ");
        append_amount(buffer, all->own[OBJECTS_IN_USE], sign, 0);
        text_append(buffer, is_difference ? " objects; allocated meanwhile: "
                                          : " objects; allocated in all: ");
        append_bytes(buffer, all->own[BYTES_MADE], "", 0);
        text_print(buffer, " in %.0f", all->own[OBJECTS_MADE]);
    }
    text_append(buffer, "\n");
}

/* How the figures came about. */
static void append_seen(struct text_buffer *buffer, const struct objects_report *report)
{
    const struct profile_objects *objects = &report->profile->objects;
    char note[OBJECTS_NOTE_BYTES];
    if (objects_are_of_heap(report->profile)) {
        if (objects->rate > 1) {
            text_print(buffer, "  estimated from %" PRIu64 " sampled allocations, one per ",
                       report->seen);
            append_bytes(buffer, (double)objects->rate, "", 0);
            text_append(buffer, " on average; ");
        } else {
            text_print(buffer, "  all %" PRIu64 " allocations were recorded; ", report->seen);
        }
    } else {
        text_append(buffer, "  ");
    }
    text_print(buffer, "stacks: %.1f %% cut, %.1f %% with an unnamed frame\n",
               report_percent(report->seen_cut, report->seen),
               report_percent(report->seen_unnamed, report->seen));
    if (objects_note(report->profile, note))
        text_print(buffer, "  %s\n", note);
}

static void append_memory(struct text_buffer *buffer, const struct profile_objects *objects)
{
    if (objects->heap_arena || objects->heap_mmap) {
        text_append(buffer, "  malloc has ");
        append_bytes(buffer, (double)objects->heap_arena + (double)objects->heap_mmap, "", 0);
        text_append(buffer, " from the kernel: ");
        append_bytes(buffer, (double)objects->heap_used + (double)objects->heap_mmap, "", 0);
        text_append(buffer, " in use, ");
        append_bytes(buffer, (double)objects->heap_free, "", 0);
        text_append(buffer, " free\n");
    }
    if (objects->resident_peak) {
        text_append(buffer, "  resident memory peaked at ");
        append_bytes(buffer, (double)objects->resident_peak, "", 0);
        text_append(buffer, "\n");
    }
}

static void append_head(struct text_buffer *buffer, const struct objects_report *report)
{
    const struct fgprof_profile *profile = report->profile;
    const char *command = profile_recorded_by(profile);
    text_append(buffer, "fgprof-c report: ");
    text_append_short_name(buffer, objects_kind_name(profile), REPORT_NAME_COLUMNS);
    text_append(buffer, " of ");
    append_process(buffer, profile);
    text_print(buffer,
               "%s %.2f s\n  recorded by: ", profile->is_difference ? ", what changed in" : ";",
               report_seconds(profile->summary.elapsed_ns));
    text_append_short_name(buffer, *command ? command : "not known", COMMAND_COLUMNS);
    if (profile->reason) {
        text_append(buffer, "\n  reason: ");
        text_append_short_name(buffer, profile->reason, REASON_COLUMNS);
    }
    text_append(buffer, "\n");
    append_totals(buffer, report);
    append_seen(buffer, report);
    append_memory(buffer, &profile->objects);
}

static void append_share(struct text_buffer *buffer, const struct objects_report *report,
                         double value, enum object_measure measure)
{
    double all = report->all.own[measure];
    if (report->profile->is_difference)
        return;
    text_print(buffer, "  %5.1f %%", all > 0 ? 100 * value / all : 0);
}

/* Appends the columns between a stack's value and its path. */
static void append_facts(struct text_buffer *buffer, const struct objects_report *report,
                         const struct object_sums *sums, enum object_measure measure)
{
    bool is_in_use = measure == BYTES_IN_USE;
    double objects = sums->own[is_in_use ? OBJECTS_IN_USE : OBJECTS_MADE];
    size_t from;
    switch (report->profile->kind) {
    case FGPROF_KIND_CUSTOM:
        break;
    case FGPROF_KIND_GROWTH:
        text_print(buffer, " %9.0f", sums->own[OBJECTS_MADE]);
        break;
    case FGPROF_KIND_THREADCREATE:
        text_append(buffer, "  ");
        from = buffer->length;
        text_append_short_name(buffer, strings_get(&report->profile->strings, sums->thread_name),
                               THREAD_COLUMNS);
        text_append(buffer, sums->has_other_names ? " ..." : "");
        if (!buffer->error)
            text_print(buffer, "%*s",
                       THREAD_COLUMNS + 4 -
                           (int)text_columns(buffer->text + from, buffer->length - from),
                       "");
        break;
    default:
        append_amount(buffer, objects, is_in_use ? sign_of(report) : "", 11);
        append_bytes(buffer, objects != 0 ? sums->own[measure] / objects : 0, "", 11);
        append_bytes(buffer, sums->own[is_in_use ? BYTES_MADE : BYTES_IN_USE],
                     is_in_use ? "" : sign_of(report), 12);
    }
}

static void append_columns(struct text_buffer *buffer, const struct objects_report *report,
                           enum object_measure measure)
{
    bool is_in_use = measure == BYTES_IN_USE;
    const char *share = report->profile->is_difference ? "" : "    SHARE";
    switch (report->profile->kind) {
    case FGPROF_KIND_CUSTOM:
        text_print(buffer, "       COUNT%s  PATH\n", share);
        break;
    case FGPROF_KIND_GROWTH:
        text_print(buffer, "    RESIDENT%s    FAULTS  PATH\n", share);
        break;
    case FGPROF_KIND_THREADCREATE:
        text_print(buffer, "     THREADS%s  %-*s  PATH\n", share, THREAD_COLUMNS + 4, "NAME");
        break;
    default:
        text_print(buffer, "%12s%s    OBJECTS    AVERAGE%12s  PATH\n",
                   is_in_use ? "IN USE" : "ALLOCATED", share, is_in_use ? "ALLOCATED" : "IN USE");
    }
}

/* A title and a line for each stack; nothing if there is none. */
static void append_stacks(struct text_buffer *buffer, const struct objects_report *report,
                          const char *title, enum object_measure measure, bool is_least)
{
    struct object_rows rows = objects_top_stacks(report, measure, is_least);
    bool is_made = measure == OBJECTS_MADE || measure == BYTES_MADE;
    if (!rows.count)
        return;
    text_print(buffer, "\n%s, by stack:\n", title);
    append_columns(buffer, report, measure);
    for (size_t i = 0; i < rows.count; i++) {
        const struct object_sums *sums = &report->stacks[rows.rows[i]];
        append_value(buffer, sums, measure, is_made ? "" : sign_of(report), 12);
        append_share(buffer, report, sums->own[measure], measure);
        append_facts(buffer, report, sums, measure);
        text_append(buffer, "  ");
        call_tree_append_path(buffer, &report->tree, rows.rows[i], &report->labels);
        text_append(buffer, "\n");
    }
    if (rows.left_out)
        text_print(buffer, "  and %zu more\n", rows.left_out);
}

static void append_functions(struct text_buffer *buffer, const struct objects_report *report,
                             enum object_measure measure)
{
    struct object_rows rows = objects_top_functions(report, measure);
    if (!rows.count)
        return;
    text_append(buffer, "\nIn use, by function, and with what it calls:\n"
                        "         OWN       TOTAL  FUNCTION\n");
    for (size_t i = 0; i < rows.count; i++) {
        const struct object_sums *sums = &report->functions[rows.rows[i]];
        append_bytes(buffer, sums->own[measure], "", 12);
        append_bytes(buffer, sums->total[measure], "", 12);
        text_append(buffer, "  ");
        text_append_short_name(buffer, label_text(&report->labels, rows.rows[i]),
                               CALL_TREE_PATH_COLUMNS);
        text_append(buffer, "\n");
    }
    if (rows.left_out)
        text_print(buffer, "  and %zu more\n", rows.left_out);
}

static void append_heap(struct text_buffer *buffer, const struct objects_report *report)
{
    bool is_difference = report->profile->is_difference;
    bool is_of_allocs = report->profile->kind == FGPROF_KIND_ALLOCS;
    if (is_of_allocs)
        append_stacks(buffer, report, "Allocated", BYTES_MADE, false);
    append_stacks(buffer, report, is_difference ? "Grown" : "In use", BYTES_IN_USE, false);
    if (is_difference)
        append_stacks(buffer, report, "Shrunk", BYTES_IN_USE, true);
    else
        append_functions(buffer, report, BYTES_IN_USE);
    if (!is_of_allocs)
        append_stacks(buffer, report, "Allocated", BYTES_MADE, false);
}

static void append_others(struct text_buffer *buffer, const struct objects_report *report)
{
    struct object_type types[OBJECT_TYPES_MAX];
    const struct fgprof_profile *profile = report->profile;
    objects_types(profile, types);
    enum object_measure measure = types[objects_main_type(profile)].measure;
    append_stacks(buffer, report,
                  profile->is_difference                ? "Grown"
                  : profile->kind == FGPROF_KIND_GROWTH ? "Resident"
                  : profile->kind == FGPROF_KIND_CUSTOM ? "Added"
                                                        : "Made",
                  measure, false);
    if (profile->is_difference)
        append_stacks(buffer, report, "Shrunk", measure, true);
}

static void append_next(struct text_buffer *buffer, const struct fgprof_profile *profile)
{
    if (!profile->read_from)
        return;
    text_append(buffer, "\nNext, a flame graph of this:\n  fgprof-c convert ");
    report_append_file(buffer, profile->read_from);
    text_print(buffer, " -o %s.html\n",
               profile->kind == FGPROF_KIND_CUSTOM ? "custom" : objects_kind_name(profile));
}

void report_objects_text(const struct objects_report *report, struct sink *sink)
{
    struct text_buffer buffer = {0};
    append_head(&buffer, report);
    if (objects_are_of_heap(report->profile))
        append_heap(&buffer, report);
    else
        append_others(&buffer, report);
    append_next(&buffer, report->profile);
    text_put(sink, &buffer);
}
