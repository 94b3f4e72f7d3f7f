/* The report of objects as text: at most 60 lines, without colours. */
#include "output/report/objects.h"
#include "output/report/report.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>

#define COMMAND_COLUMNS 100
#define REASON_COLUMNS 200
#define THREAD_COLUMNS 20

/* Appends "1.5 MiB", aligned right in `columns`. `sign` is "+", or "" to show only a minus. */
static void append_bytes(struct buffer *buffer, double bytes, const char *sign, int columns)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    double shown = bytes < 0 ? -bytes : bytes;
    char text[64];
    for (; shown >= 1023.95 && unit + 1 < sizeof units / sizeof *units; unit++)
        shown /= 1024;
    snprintf(text, sizeof text, "%s%.*f %s", bytes < 0 ? "-" : sign, unit ? 1 : 0, shown,
             units[unit]);
    buffer_print(buffer, "%*s", columns, text);
}

static void append_amount(struct buffer *buffer, double amount, const char *sign, int columns)
{
    char text[64];
    snprintf(text, sizeof text, "%s%.0f", amount > 0 ? sign : "", amount);
    buffer_print(buffer, "%*s", columns, text);
}

static bool is_of_bytes(enum object_measure measure)
{
    return measure == BYTES_MADE || measure == BYTES_IN_USE;
}

static void append_value(struct buffer *buffer, const struct object_sums *sums,
                         enum object_measure measure, const char *sign, int columns)
{
    if (is_of_bytes(measure))
        append_bytes(buffer, sums->own[measure], sign, columns);
    else
        append_amount(buffer, sums->own[measure], sign, columns);
}

/* The sign of growth: "+" in a difference. */
static const char *sign_of(const struct objects_report *report)
{
    return report->profile->is_difference ? "+" : "";
}

static void append_process(struct buffer *buffer, const struct fgprof_profile *profile)
{
    const char *name = "";
    if (profile->process_count)
        name = strings_get(&profile->strings, profile->processes[0].name);
    if (profile->process_count > 1) {
        buffer_print(buffer, "%zu processes", profile->process_count);
        return;
    }
    name_append_short(buffer, *name ? name : "[unnamed]", REPORT_NAME_COLUMNS);
    if (profile->process_count && profile->processes[0].pid) /* 0: of processes that have ended */
        buffer_print(buffer, "/%" PRIu32, profile->processes[0].pid);
}

static void append_totals(struct buffer *buffer, const struct objects_report *report)
{
    const struct object_sums *all = &report->all;
    const char *sign = sign_of(report);
    bool is_difference = report->profile->is_difference;
    buffer_puts(buffer, "  ");
    switch (report->profile->kind) {
    case FGPROF_KIND_THREADCREATE:
        append_amount(buffer, all->own[OBJECTS_MADE], sign, 0);
        buffer_puts(buffer, " threads were made");
        break;
    case FGPROF_KIND_CUSTOM:
        buffer_puts(buffer, is_difference ? "change: " : "total: ");
        append_amount(buffer, all->own[OBJECTS_IN_USE], sign, 0);
        break;
    case FGPROF_KIND_GROWTH:
        buffer_puts(buffer, "resident: ");
        append_bytes(buffer, all->own[BYTES_IN_USE], sign, 0);
        buffer_print(buffer, "; page faults: %.0f", all->own[OBJECTS_MADE]);
        break;
    default:
        buffer_puts(buffer, "in use: ");
        append_bytes(buffer, all->own[BYTES_IN_USE], sign, 0);
        buffer_puts(buffer, " in ");
        append_amount(buffer, all->own[OBJECTS_IN_USE], sign, 0);
        buffer_puts(buffer, is_difference ? " objects; allocated meanwhile: "
                                          : " objects; allocated in all: ");
        append_bytes(buffer, all->own[BYTES_MADE], "", 0);
        buffer_print(buffer, " in %.0f", all->own[OBJECTS_MADE]);
    }
    buffer_puts(buffer, "\n");
}

/* Explains how the figures were sampled. */
static void append_sampling(struct buffer *buffer, const struct objects_report *report)
{
    const struct profile_objects *objects = &report->profile->objects;
    bool is_difference = report->profile->is_difference;
    if (objects_are_of_heap(report->profile) && objects->rate > 1) {
        buffer_puts(buffer, "  estimated from ");
        if (!is_difference)
            buffer_print(buffer, "%" PRIu64 " ", report->seen);
        buffer_puts(buffer, "sampled allocations, one per ");
        append_bytes(buffer, (double)objects->rate, "", 0);
        buffer_puts(buffer, is_difference ? " on average\n" : " on average; ");
    } else if (!is_difference && objects_are_of_heap(report->profile)) {
        buffer_print(buffer, "  all %" PRIu64 " allocations were recorded; ", report->seen);
    } else if (!is_difference) {
        buffer_puts(buffer, "  ");
    }
}

/* A difference has no such counts: more may have been seen in the earlier profile. */
static void append_seen(struct buffer *buffer, const struct objects_report *report)
{
    char note[OBJECTS_NOTE_BYTES];
    append_sampling(buffer, report);
    if (!report->profile->is_difference)
        buffer_print(buffer, "stacks: %.1f %% cut, %.1f %% with an unnamed frame\n",
                     report_percent(report->seen_cut, report->seen),
                     report_percent(report->seen_unnamed, report->seen));
    if (objects_note(report->profile, note))
        buffer_print(buffer, "  %s\n", note);
}

static void append_memory(struct buffer *buffer, const struct profile_objects *objects)
{
    if (objects->heap_arena || objects->heap_mmap) {
        buffer_puts(buffer, "  malloc has ");
        append_bytes(buffer, (double)objects->heap_arena + (double)objects->heap_mmap, "", 0);
        buffer_puts(buffer, " from the kernel: ");
        append_bytes(buffer, (double)objects->heap_used + (double)objects->heap_mmap, "", 0);
        buffer_puts(buffer, " in use, ");
        append_bytes(buffer, (double)objects->heap_free, "", 0);
        buffer_puts(buffer, " free\n");
    }
    if (objects->resident_peak) {
        buffer_puts(buffer, "  resident memory peaked at ");
        append_bytes(buffer, (double)objects->resident_peak, "", 0);
        buffer_puts(buffer, "\n");
    }
}

static void append_head(struct buffer *buffer, const struct objects_report *report)
{
    const struct fgprof_profile *profile = report->profile;
    const char *command = profile_recorded_by(profile);
    buffer_puts(buffer, "fgprof-c report: ");
    name_append_short(buffer, objects_kind_name(profile), REPORT_NAME_COLUMNS);
    buffer_puts(buffer, " of ");
    append_process(buffer, profile);
    report_append_host(buffer, profile);
    buffer_print(buffer,
                 "%s %.2f s\n  recorded by: ", profile->is_difference ? ", what changed in" : ";",
                 report_seconds(profile->summary.elapsed_ns));
    name_append_short(buffer, *command ? command : "not known", COMMAND_COLUMNS);
    if (profile->reason) {
        buffer_puts(buffer, "\n  reason: ");
        name_append_short(buffer, profile->reason, REASON_COLUMNS);
    }
    buffer_puts(buffer, "\n");
    append_totals(buffer, report);
    append_seen(buffer, report);
    append_memory(buffer, &profile->objects);
}

static void append_share(struct buffer *buffer, const struct objects_report *report, double value,
                         enum object_measure measure)
{
    double all = report->all.own[measure];
    if (report->profile->is_difference)
        return;
    buffer_print(buffer, "  %5.1f %%", all > 0 ? 100 * value / all : 0);
}

/* Appends the columns between a stack's value and its path. */
static void append_facts(struct buffer *buffer, const struct objects_report *report,
                         const struct object_sums *sums, enum object_measure measure)
{
    bool is_in_use = measure == BYTES_IN_USE;
    double objects = sums->own[is_in_use ? OBJECTS_IN_USE : OBJECTS_MADE];
    size_t from;
    switch (report->profile->kind) {
    case FGPROF_KIND_CUSTOM:
        break;
    case FGPROF_KIND_GROWTH:
        buffer_print(buffer, " %9.0f", sums->own[OBJECTS_MADE]);
        break;
    case FGPROF_KIND_THREADCREATE:
        buffer_puts(buffer, "  ");
        from = buffer->length;
        name_append_short(buffer, strings_get(&report->profile->strings, sums->thread_name),
                          THREAD_COLUMNS);
        buffer_puts(buffer, sums->has_other_names ? " ..." : "");
        if (!buffer->error)
            buffer_print(buffer, "%*s",
                         THREAD_COLUMNS + 4 -
                             (int)utf8_columns(buffer->bytes + from, buffer->length - from),
                         "");
        break;
    default:
        append_amount(buffer, objects, is_in_use ? sign_of(report) : "", 11);
        append_bytes(buffer, objects != 0 ? sums->own[measure] / objects : 0, "", 11);
        append_bytes(buffer, sums->own[is_in_use ? BYTES_MADE : BYTES_IN_USE],
                     is_in_use ? "" : sign_of(report), 12);
    }
}

static void append_columns(struct buffer *buffer, const struct objects_report *report,
                           enum object_measure measure)
{
    bool is_in_use = measure == BYTES_IN_USE;
    const char *share = report->profile->is_difference ? "" : "    SHARE";
    switch (report->profile->kind) {
    case FGPROF_KIND_CUSTOM:
        buffer_print(buffer, "       COUNT%s  PATH\n", share);
        break;
    case FGPROF_KIND_GROWTH:
        buffer_print(buffer, "    RESIDENT%s    FAULTS  PATH\n", share);
        break;
    case FGPROF_KIND_THREADCREATE:
        buffer_print(buffer, "     THREADS%s  %-*s  PATH\n", share, THREAD_COLUMNS + 4, "NAME");
        break;
    default:
        buffer_print(buffer, "%12s%s    OBJECTS    AVERAGE%12s  PATH\n",
                     is_in_use ? "IN USE" : "ALLOCATED", share, is_in_use ? "ALLOCATED" : "IN USE");
    }
}

/* Appends a title and a line for each stack; nothing without stacks. */
static void append_stacks(struct buffer *buffer, const struct objects_report *report,
                          const char *title, enum object_measure measure, bool is_least)
{
    struct object_rows rows = objects_top_stacks(report, measure, is_least);
    bool is_made = measure == OBJECTS_MADE || measure == BYTES_MADE;
    if (!rows.count)
        return;
    buffer_print(buffer, "\n%s, by stack:\n", title);
    append_columns(buffer, report, measure);
    for (size_t i = 0; i < rows.count; i++) {
        const struct object_sums *sums = &report->stacks[rows.rows[i].at];
        append_value(buffer, sums, measure, is_made ? "" : sign_of(report), 12);
        append_share(buffer, report, sums->own[measure], measure);
        append_facts(buffer, report, sums, measure);
        buffer_puts(buffer, "  ");
        call_tree_append_path(buffer, &report->tree, rows.rows[i].at, &report->labels);
        buffer_puts(buffer, "\n");
    }
    if (rows.left_out)
        buffer_print(buffer, "  and %zu more\n", rows.left_out);
}

static void append_functions(struct buffer *buffer, const struct objects_report *report,
                             enum object_measure measure)
{
    struct object_rows rows = objects_top_functions(report, measure);
    if (!rows.count)
        return;
    buffer_puts(buffer, "\nIn use, by function, and with what it calls:\n"
                        "         OWN       TOTAL  FUNCTION\n");
    for (size_t i = 0; i < rows.count; i++) {
        const struct object_sums *sums = &report->functions[rows.rows[i].at];
        append_bytes(buffer, sums->own[measure], "", 12);
        append_bytes(buffer, sums->total[measure], "", 12);
        buffer_puts(buffer, "  ");
        name_append_short(buffer, label_text(&report->labels, rows.rows[i].at),
                          CALL_TREE_PATH_COLUMNS);
        buffer_puts(buffer, "\n");
    }
    if (rows.left_out)
        buffer_print(buffer, "  and %zu more\n", rows.left_out);
}

static void append_heap(struct buffer *buffer, const struct objects_report *report)
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

static void append_others(struct buffer *buffer, const struct objects_report *report)
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

static void append_next(struct buffer *buffer, const struct fgprof_profile *profile)
{
    if (!profile->read_from)
        return;
    buffer_puts(buffer, "\nNext, a flame graph of this:\n  fgprof-c convert ");
    report_append_file(buffer, profile->read_from);
    buffer_print(buffer, " -o %s.html\n",
                 profile->kind == FGPROF_KIND_CUSTOM ? "custom" : objects_kind_name(profile));
}

void report_objects_text(const struct objects_report *report, struct sink *sink)
{
    struct buffer buffer = {0};
    append_head(&buffer, report);
    if (objects_are_of_heap(report->profile))
        append_heap(&buffer, report);
    else
        append_others(&buffer, report);
    append_next(&buffer, report->profile);
    sink_put(sink, &buffer);
}
