/* A self-contained page that shows a profile, or the difference of two, as a flame graph: the
 * sources in page/ with the data between them, as JSON. Text reaches the screen through textContent
 * or a canvas, never as HTML. */
#include "base/protobuf.h"
#include "output/json.h"
#include "output/output.h"
#include "output/report/report.h"
#include "page.inc" /* page_html, page_css, page_js */
#include "profile/frame.h"
#include "output/state.h"
#include "profile/objects.h"
#include "profile/place.h"
#include "profile/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The profile's tables, which refer to each other by number:
 *   processes  [pid, name, title]: the title only if it has one
 *   strings    each text once; 0 in place of one that nothing refers to
 *   locations  [module, flags, function, file, line, ...]: the last three for each function there,
 *              innermost first; if none is known, a text in place of them
 *   stacks     [location, ...], leaf first
 *   samples    [stack, thread name, tid, state, syscall, wait channel, count, time_ns, process,
 *              elapsed_ns, labels, value, ...]: what follows the process only if the profile has
 *              it; the tid of goroutine 7 is -7, because a thread may have the id 7; labels is the
 *              number of a row of `labels`, from 1 on, or 0 for none; the values are an object's,
 *              one of each type
 *   labels     [key, value, ...], sorted by key; omitted if there are none
 *   parallel   [ns, ...]: how long 0, 1, ... threads of a process ran at once; omitted if not known
 *   objects    {kind, types, shown, ...}: for a profile of objects, the types [name, unit] and the
 *              number of the one that is shown first; otherwise omitted
 *   births     [tid, maker, function] of threads, as struct profile_birth; may be omitted
 *   timelines  {grain_ns, ended_early, threads, runs}, if it was recorded when threads were where:
 *              see write_timelines
 *   places     for each stack, how many frames are nearer to the leaf than its place in the
 *              program's own code (profile/place.h)
 *   findings   [text, detail, function]: the report's findings; detail and function may be ""
 *   idle       [process, thread name, tid], as in samples, of threads that only waited for work, as
 *              in the report; these last three are omitted from profiles of objects and from
 *              differences
 */
/* As in page/data.js. */
enum { FLAG_KERNEL = 1, FLAG_JIT = 2, FLAG_NOTE = 4, FLAG_START = 64, FLAG_LIBRARY = 256 };

static uint32_t module_of(const struct fgprof_profile *profile,
                          const struct profile_location *location)
{
    return location->mapping == PROFILE_NO_MAPPING ? 0 : profile->mappings[location->mapping].path;
}

/* Names as in the symbol table, build ids and so on are not shown, and would double the page. */
static bool *used_strings(const struct fgprof_profile *profile, const struct profile_view *view)
{
    bool *used = calloc(profile->strings.count, sizeof *used);
    if (!used)
        return NULL;
    for (size_t i = 0; i < profile->line_count; i++) {
        const struct profile_function *function = &profile->functions[profile->lines[i].function];
        used[function->name] = used[function->file] = true;
    }
    for (size_t i = 0; i < profile->location_count; i++)
        used[module_of(profile, &profile->locations[i])] = true;
    for (size_t i = 0; i < profile->process_count; i++)
        used[profile->processes[i].name] = used[profile->processes[i].title] = true;
    for (size_t i = 0; i < view->sample_count; i++) {
        const struct profile_sample *sample = &view->samples[i];
        used[sample->thread_name] = used[sample->syscall_name] = used[sample->wait_channel] = true;
    }
    for (size_t i = 0; i < profile->birth_count; i++)
        used[profile->births[i].maker] = used[profile->births[i].function] = true;
    for (size_t i = 0; i < profile->label_count; i++)
        used[profile->labels[i].key] = used[profile->labels[i].value] = true;
    for (size_t i = 0; i < profile->wait_count; i++) {
        const struct profile_wait *wait = &profile->waits[i];
        used[wait->kind] = used[wait->resource] = used[wait->owner_name] = true;
        used[wait->waker] = true;
    }
    return used;
}

static void write_strings(const struct fgprof_profile *profile, const struct profile_view *view,
                          struct json *json)
{
    bool *used = used_strings(profile, view);
    if (!used) {
        json->sink->error = json->sink->error ? json->sink->error : -ENOMEM;
        return;
    }
    json_begin(json, "strings", '[');
    for (size_t i = 0; i < profile->strings.count; i++) {
        if (used[i])
            json_string(json, NULL, strings_get(&profile->strings, (uint32_t)i));
        else
            json_number(json, NULL, 0);
    }
    json_end(json, ']');
    free(used);
}

/* Whether it starts a thread or the program, as all its threads' stacks do. */
static bool is_start(const struct fgprof_profile *profile, const struct profile_location *location)
{
    const struct profile_line *line = &profile->lines[location->first_line];
    return location->line_count == 1 &&
           place_roles(strings_get(&profile->strings, profile->functions[line->function].name)) &
               LABEL_START;
}

static void write_location(const struct fgprof_profile *profile,
                           const struct profile_location *location, struct json *json)
{
    unsigned flags =
        (location->is_kernel ? FLAG_KERNEL : 0u) | (location->jit_function_plus_1 ? FLAG_JIT : 0u) |
        (location->is_note ? FLAG_NOTE : 0u) | (is_start(profile, location) ? FLAG_START : 0u);
    if (place_is_in_library(profile, location,
                            PLACE_C_LIBRARY | PLACE_CXX_LIBRARY | PLACE_GO_RUNTIME))
        flags |= FLAG_LIBRARY;
    json_begin(json, NULL, '[');
    json_number(json, NULL, module_of(profile, location));
    json_number(json, NULL, flags);
    for (uint32_t i = 0; i < location->line_count; i++) {
        const struct profile_line *line = &profile->lines[location->first_line + i];
        const struct profile_function *function = &profile->functions[line->function];
        json_number(json, NULL, function->name);
        json_number(json, NULL, function->file);
        json_number(json, NULL, line->line);
    }
    if (!location->line_count) {
        struct buffer name = {0};
        frame_append_unnamed(&name, profile, location, false);
        json_string(json, NULL, name.bytes ? name.bytes : "");
        buffer_free(&name);
    }
    json_end(json, ']');
}

static void write_locations(const struct fgprof_profile *profile, struct json *json)
{
    json_begin(json, "locations", '[');
    for (size_t i = 0; i < profile->location_count; i++)
        write_location(profile, &profile->locations[i], json);
    json_end(json, ']');
}

static void write_stacks(const struct fgprof_profile *profile, struct json *json)
{
    json_begin(json, "stacks", '[');
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct profile_stack *stack = &profile->stacks[i];
        json_begin(json, NULL, '[');
        for (size_t j = 0; j < stack->depth; j++)
            json_number(json, NULL, profile->stack_locations[stack->first_location + j]);
        json_end(json, ']');
    }
    json_end(json, ']');
}

static void write_places(const struct fgprof_profile *profile, struct json *json)
{
    struct places places;
    struct profile_frame frame;
    int err = places_init(&places, profile);
    if (err && !json->sink->error)
        json->sink->error = err;
    json_begin(json, "places", '[');
    for (size_t i = 0; i < profile->stack_count && !err; i++) {
        size_t nearer = place_of_stack(&places, &profile->stacks[i], &frame);
        json_number(json, NULL, nearer == PLACE_NONE ? 0 : nearer);
    }
    json_end(json, ']');
    places_free(&places);
}

static void write_values(const struct fgprof_profile *profile, const struct profile_sample *sample,
                         struct json *json)
{
    struct object_type types[OBJECT_TYPES_MAX];
    size_t count = objects_types(profile, types);
    for (size_t i = 0; i < count; i++)
        json_print(json, NULL, "%" PRId64, objects_value(profile, sample, types[i].measure));
}

static void write_samples(const struct fgprof_profile *profile, const struct profile_view *view,
                          struct json *json)
{
    bool is_of_objects = profile_is_of_objects(profile);
    json_begin(json, "samples", '[');
    for (size_t i = 0; i < view->sample_count; i++) {
        const struct profile_sample *sample = &view->samples[i];
        json_begin(json, NULL, '[');
        json_print(json, NULL,
                   "%" PRIu32 ",%" PRIu32 ",%" PRId64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32
                   ",%" PRIu64 ",%" PRIu64 ",%" PRIu32,
                   sample->stack, sample->thread_name,
                   signed_tid(sample->tid, sample->is_goroutine), sample->state,
                   sample->syscall_name, sample->wait_channel, sample->count, sample->time_ns,
                   sample->process);
        if (profile->has_elapsed || profile->label_set_count || is_of_objects)
            json_number(json, NULL, sample->elapsed_ns);
        if (profile->label_set_count || is_of_objects)
            json_number(json, NULL, sample->label_set_plus_1);
        if (is_of_objects)
            write_values(profile, sample, json);
        json_end(json, ']');
    }
    json_end(json, ']');
}

static void write_labels(const struct fgprof_profile *profile, struct json *json)
{
    if (!profile->label_set_count)
        return;
    json_begin(json, "labels", '[');
    for (size_t i = 0; i < profile->label_set_count; i++) {
        const struct profile_label_set *set = &profile->label_sets[i];
        json_begin(json, NULL, '[');
        for (uint32_t j = 0; j < set->label_count; j++) {
            const struct profile_label *label = &profile->labels[set->first_label + j];
            json_number(json, NULL, label->key);
            json_number(json, NULL, label->value);
        }
        json_end(json, ']');
    }
    json_end(json, ']');
}

static void write_births(const struct fgprof_profile *profile, struct json *json)
{
    if (!profile->birth_count || profile->threads == FGPROF_THREADS_BY_NAME)
        return;
    json_begin(json, "births", '[');
    for (size_t i = 0; i < profile->birth_count; i++) {
        const struct profile_birth *birth = &profile->births[i];
        json_print(json, NULL, "[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", birth->tid, birth->maker,
                   birth->function);
    }
    json_end(json, ']');
}

static void write_elapsed(const struct fgprof_profile *profile, struct json *json)
{
    json_bool(json, "has_elapsed", profile->has_elapsed);
    json_bool(json, "shows_elapsed", profile->folded_flags & FGPROF_FOLDED_ELAPSED);
    json_begin(json, "parallel", '[');
    for (size_t i = 0; i < profile->parallel_count; i++)
        json_number(json, NULL, profile->parallel_ns[i]);
    json_end(json, ']');
}

static void write_processes(const struct fgprof_profile *profile, struct json *json)
{
    json_begin(json, "processes", '[');
    for (size_t i = 0; i < profile->process_count; i++) {
        const struct profile_process *process = &profile->processes[i];
        json_begin(json, NULL, '[');
        json_number(json, NULL, process->pid);
        json_number(json, NULL, process->name);
        if (process->title)
            json_number(json, NULL, process->title);
        json_end(json, ']');
    }
    json_end(json, ']');
}

static void write_states(struct json *json)
{
    json_begin(json, "states", '[');
    for (uint32_t i = 0; i < THREAD_STATE_COUNT; i++)
        json_string(json, NULL, state_name(i));
    json_end(json, ']');
}

static void write_summary(const struct fgprof_profile *profile, struct json *json)
{
    const struct fgprof_summary *summary = &profile->summary;
    const struct {
        const char *key;
        uint64_t number;
    } numbers[] = {
        {"ticks_planned", summary->ticks_planned},
        {"ticks_taken", summary->ticks_taken},
        {"ticks_late", summary->ticks_late},
        {"threads_seen", summary->threads_seen},
        {"samples", summary->samples},
        {"samples_cut", summary->samples_cut},
        {"samples_unnamed", summary->samples_unnamed},
        {"samples_not_captured", summary->samples_not_captured},
        {"samples_assumed", summary->samples_assumed},
        {"samples_thinned", summary->samples_thinned},
        {"observations_put_off", summary->observations_put_off},
        {"kernel_samples", summary->kernel_samples},
        {"threads_kernel_sampled", summary->threads_kernel_sampled},
        {"modules_unreadable", summary->modules_unreadable},
        {"pauses", summary->pauses},
        {"pause_median_ns", summary->pause_median_ns},
        {"pause_p99_ns", summary->pause_p99_ns},
        {"pause_max_ns", summary->pause_max_ns},
    };
    json_begin(json, "summary", '{');
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_number(json, numbers[i].key, numbers[i].number);
    json_end(json, '}');
    json_string(json, "kept", profile_kept_name(profile));
}

static void write_deadlocks(const struct fgprof_profile *profile, struct json *json)
{
    if (!profile->deadlock_count)
        return;
    json_begin(json, "deadlocks", '[');
    for (size_t i = 0; i < profile->deadlock_count; i++)
        json_string(json, NULL, strings_get(&profile->strings, profile->deadlocks[i]));
    json_end(json, ']');
}

static void write_objects(const struct fgprof_profile *profile, const struct profile_view *view,
                          struct json *json)
{
    const struct profile_objects *objects = &profile->objects;
    struct object_type types[OBJECT_TYPES_MAX];
    size_t count = objects_types(profile, types);
    uint64_t seen = 0;
    for (size_t i = 0; i < view->sample_count; i++)
        seen += view->samples[i].made;
    json_begin(json, "objects", '{');
    json_string(json, "kind", objects_kind_name(profile));
    json_begin(json, "types", '[');
    for (size_t i = 0; i < count; i++) {
        json_begin(json, NULL, '[');
        json_string(json, NULL, types[i].name);
        json_string(json, NULL, types[i].unit);
        json_end(json, ']');
    }
    json_end(json, ']');
    json_number(json, "shown", objects_main_type(profile));
    json_number(json, "rate", objects->rate);
    json_number(json, "seen", seen);
    json_number(json, "made_lost", objects->made_lost);
    json_number(json, "gone_lost", objects->gone_lost);
    json_number(json, "resident_peak", objects->resident_peak);
    json_number(json, "heap_arena", objects->heap_arena);
    json_number(json, "heap_mmap", objects->heap_mmap);
    json_number(json, "heap_used", objects->heap_used);
    json_number(json, "heap_free", objects->heap_free);
    json_number(json, "allocator_is_own", profile->summary.allocator_is_own);
    json_end(json, '}');
}

static void write_findings(const struct report *report, struct json *json)
{
    json_begin(json, "findings", '[');
    for (size_t i = 0; i < report->finding_count; i++) {
        const struct report_finding *finding = &report->findings[i];
        json_begin(json, NULL, '[');
        json_string(json, NULL, finding->text);
        json_string(json, NULL, finding->detail ? finding->detail : "");
        json_string(json, NULL,
                    finding->function ? label_text(&report->labels, finding->function) : "");
        json_end(json, ']');
    }
    json_end(json, ']');
}

static void write_idle(const struct report *report, struct json *json)
{
    json_begin(json, "idle", '[');
    for (size_t i = 0; i < report->thread_count; i++) {
        const struct report_thread *thread = &report->threads[i];
        if (thread->times.all_ns && report_is_idle(thread))
            json_print(json, NULL, "[%" PRIu32 ",%" PRIu32 ",%" PRId64 "]", thread->process,
                       thread->name, signed_tid(thread->tid, thread->is_goroutine));
    }
    json_end(json, ']');
}

/* What the page shows first, and what it leaves out at first. */
static void page_report(const struct fgprof_profile *profile, const struct profile_view *view,
                        struct json *json)
{
    struct report report = {.profile = profile, .view = view};
    if (profile_is_of_objects(profile))
        return;
    write_places(profile, json);
    int err = report_make(&report);
    if (err && !json->sink->error)
        json->sink->error = err;
    if (!err) {
        write_findings(&report, json);
        write_idle(&report, json);
    }
    report_free(&report);
}

/* Writes all of the profile that the page shows, as members of a JSON object without its braces.
 * The members are described above, and data.js reads them. */
static void page_data(const struct fgprof_profile *profile, const struct profile_view *view,
                      struct json *json)
{
    json_number(json, "version", 1);
    json_string(json, "command", profile->command ? profile->command : "");
    json_string(json, "recorded_by", profile_recorded_by(profile));
    json_number(json, "start_time_ns", profile->start_time_ns);
    json_number(json, "elapsed_ns", profile->summary.elapsed_ns);
    json_number(json, "period_ns", profile->period_ns);
    write_summary(profile, json);
    write_deadlocks(profile, json);
    if (profile->reason)
        json_string(json, "reason", profile->reason);
    if (profile->host)
        json_string(json, "host", profile->host);
    if (profile_is_of_objects(profile))
        write_objects(profile, view, json);
    write_elapsed(profile, json);
    write_states(json);
    write_processes(profile, json);
    write_strings(profile, view, json);
    write_locations(profile, json);
    write_stacks(profile, json);
    write_labels(profile, json);
    write_births(profile, json);
    write_samples(profile, view, json);
}

static void write_wait(const struct fgprof_profile *profile, const struct profile_wait *wait,
                       struct json *json)
{
    bool tells_threads = profile->threads != FGPROF_THREADS_BY_NAME;
    json_begin(json, NULL, '[');
    json_print(json, NULL, "%" PRIu32 ",%" PRIu32, wait->kind, wait->resource);
    if (wait->owner_process != PROFILE_NO_OWNER)
        json_print(json, NULL, "%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32,
                   wait->owner_process, wait->owner_name, tells_threads ? wait->owner_tid : 0,
                   wait->owner_stack == PROFILE_NO_STACK ? 0 : wait->owner_stack + 1,
                   wait->owner_wait_plus_1);
    json_end(json, ']');
}

static void write_waker(const struct fgprof_profile *profile, const struct profile_wait *wait,
                        struct json *json)
{
    bool tells_threads = profile->threads != FGPROF_THREADS_BY_NAME;
    json_begin(json, NULL, '[');
    if (wait->waker)
        json_print(json, NULL, "%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32, wait->waker,
                   wait->waker_process_plus_1, tells_threads ? wait->waker_tid : 0,
                   wait->waker_stack_plus_1);
    json_end(json, ']');
}

/* What threads waited for. "waits" has rows of
 *   kind, resource, and if there is an owner: its process, its name, its tid, its stack + 1, and
 *   the number + 1 of the earlier row that says what it waited for itself
 * with 0 for what is not known. "wakers", if any is known, has for each of these rows what ended
 * the wait, if that is known: its name, and if it is a sampled thread, its process + 1, its tid,
 * its stack + 1. "sample_waits" has for each sample the number + 1 of its row, or 0 if its thread
 * waited for nothing, or that is not known. */
static void page_waits(const struct fgprof_profile *profile, const struct profile_view *view,
                       struct json *json)
{
    bool has_waits = false, has_wakers = false;
    for (size_t i = 0; i < view->sample_count && !has_waits; i++)
        has_waits = view->samples[i].wait_plus_1;
    for (size_t i = 0; i < profile->wait_count && !has_wakers; i++)
        has_wakers = profile->waits[i].waker;
    if (!has_waits)
        return;
    json_begin(json, "waits", '[');
    for (size_t i = 0; i < profile->wait_count; i++)
        write_wait(profile, &profile->waits[i], json);
    json_end(json, ']');
    if (has_wakers) {
        json_begin(json, "wakers", '[');
        for (size_t i = 0; i < profile->wait_count; i++)
            write_waker(profile, &profile->waits[i], json);
        json_end(json, ']');
    }
    json_begin(json, "sample_waits", '[');
    for (size_t i = 0; i < view->sample_count; i++)
        json_number(json, NULL, view->samples[i].wait_plus_1);
    json_end(json, ']');
}

/* ---- When threads were where ---- */

#define GRAINS_MAX (1u << 20) /* at first, of the whole recording: a thousand for each pixel */
#define GRAINS_MIN (1u << 12)
#define RUN_BYTES_MAX (12u << 20) /* in base64, 16 MiB: the page stays below 20 MB */

/* The runs of threads as varints, in grains of time. */
struct packed_runs {
    struct buffer bytes;
    uint64_t grain_ns, length_ns;
    uint32_t *known;       /* by sample of the view + 1: its number in this thread + 1, or 0 */
    uint32_t *of_thread;   /* the samples + 1 that have such a number */
    uint32_t thread_count; /* of those */
    uint32_t *run_counts;  /* by thread */
};

/* How many whole grains there are before a time, which ends with the recording. */
static uint64_t grains_until(const struct packed_runs *packed, uint64_t ns)
{
    return (ns < packed->length_ns ? ns : packed->length_ns) / packed->grain_ns;
}

static void pack_run(struct packed_runs *packed, uint32_t sample_plus_1, uint64_t grains)
{
    bool is_new = !packed->known[sample_plus_1];
    if (is_new) {
        packed->of_thread[packed->thread_count++] = sample_plus_1;
        packed->known[sample_plus_1] = packed->thread_count;
    }
    protobuf_varint(&packed->bytes, packed->known[sample_plus_1] - 1);
    if (is_new)
        protobuf_varint(&packed->bytes, sample_plus_1);
    protobuf_varint(&packed->bytes, grains);
}

/* Returns how many runs are packed; successive runs that are equal in the view become one. Their
 * ends are rounded, and not their times, so that no error adds up. */
static uint32_t pack_thread(struct packed_runs *packed, const struct fgprof_profile *profile,
                            const struct profile_view *view,
                            const struct profile_timeline *timeline)
{
    uint64_t end_ns = timeline->begin_ns, begin = grains_until(packed, end_ns), end = begin;
    uint32_t count = 0, last = 0;
    for (size_t i = 0; i < timeline->run_count; i++) {
        const struct profile_run *run = &profile->runs[timeline->first_run + i];
        uint32_t number =
            run->sample == PROFILE_NO_SAMPLE ? PROFILE_NO_SAMPLE : view->numbers[run->sample];
        /* The times in a file may be any numbers. */
        end_ns = run->time_ns < UINT64_MAX - end_ns ? end_ns + run->time_ns : UINT64_MAX;
        if (grains_until(packed, end_ns) == end)
            continue;
        if (end > begin && number + 1 != last) {
            pack_run(packed, last, end - begin);
            begin = end;
            count++;
        }
        last = number + 1; /* PROFILE_NO_SAMPLE + 1 is 0 */
        end = grains_until(packed, end_ns);
    }
    if (end > begin) {
        pack_run(packed, last, end - begin);
        count++;
    }
    while (packed->thread_count)
        packed->known[packed->of_thread[--packed->thread_count]] = 0;
    return count;
}

/* Packs all runs, as finely as they may take. */
static void pack(struct packed_runs *packed, const struct fgprof_profile *profile,
                 const struct profile_view *view)
{
    for (uint64_t grains = GRAINS_MAX; grains >= GRAINS_MIN; grains /= 4) {
        packed->grain_ns = packed->length_ns / grains + 1;
        packed->bytes.length = 0;
        for (size_t i = 0; i < profile->timeline_count; i++)
            packed->run_counts[i] = pack_thread(packed, profile, view, &profile->timelines[i]);
        if (packed->bytes.length <= RUN_BYTES_MAX)
            break;
    }
}

static void write_base64(struct json *json, const char *key, const struct buffer *buffer)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *bytes = (const unsigned char *)buffer->bytes;
    json_print(json, key, "\"");
    for (size_t i = 0; i < buffer->length; i += 3) {
        size_t left = buffer->length - i;
        unsigned bits = (unsigned)bytes[i] << 16 | (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0u) |
                        (left > 2 ? (unsigned)bytes[i + 2] : 0u);
        const char text[] = {digits[bits >> 18], digits[bits >> 12 & 63],
                             left > 1 ? digits[bits >> 6 & 63] : '=',
                             left > 2 ? digits[bits & 63] : '='};
        sink_write(json->sink, text, sizeof text);
    }
    sink_write(json->sink, "\"", 1);
}

static void write_packed(const struct fgprof_profile *profile, const struct packed_runs *packed,
                         struct json *json)
{
    json_begin(json, "timelines", '{');
    json_number(json, "grain_ns", packed->grain_ns);
    json_bool(json, "ended_early", profile->summary.timeline_lost_ns);
    json_begin(json, "threads", '[');
    for (size_t i = 0; i < profile->timeline_count; i++) {
        if (packed->run_counts[i])
            json_print(json, NULL, "[%" PRIu64 ",%" PRIu32 "]",
                       grains_until(packed, profile->timelines[i].begin_ns), packed->run_counts[i]);
    }
    json_end(json, ']');
    write_base64(json, "runs", &packed->bytes);
    json_end(json, '}');
}

/* When threads were where. Time is in grains, from the recording's start. "threads" has rows of
 *   begin, number of runs
 * and "runs" their runs, one thread's after the other, as varints in base64. A run is
 *   number, sample + 1, grains
 * with a number for each sample of the thread, from 0 on; the sample follows it the first time
 * only, and is 0 while the thread was absent. */
static void write_timelines(const struct fgprof_profile *profile, const struct profile_view *view,
                            struct json *json)
{
    if (!profile->has_timelines || !profile->summary.elapsed_ns)
        return;
    struct packed_runs packed = {
        .length_ns = profile->summary.elapsed_ns,
        .known = calloc(view->sample_count + 2, sizeof *packed.known),
        .of_thread = calloc(view->sample_count + 2, sizeof *packed.of_thread),
        .run_counts = calloc(profile->timeline_count + 1, sizeof *packed.run_counts),
    };
    bool has_room = packed.known && packed.of_thread && packed.run_counts;
    if (has_room)
        pack(&packed, profile, view);
    if (!json->sink->error)
        json->sink->error = has_room ? packed.bytes.error : -ENOMEM;
    if (!json->sink->error && packed.bytes.length)
        write_packed(profile, &packed, json);
    buffer_free(&packed.bytes);
    free(packed.known);
    free(packed.of_thread);
    free(packed.run_counts);
}

/* The places of the other parts in the page's HTML. */
#define PLACE_OF_STYLE "/* page.css */"
#define PLACE_OF_DATA "<!-- data -->"
#define PLACE_OF_SCRIPT "/* scripts */"

/* Writes the page's HTML up to `place`, and returns what follows the place. */
static const char *write_until(struct sink *sink, const char *html, const char *place)
{
    const char *end = strstr(html, place);
    sink_write(sink, html, (size_t)(end - html));
    return end + strlen(place);
}

/* Writes the page up to its data, and returns the rest of its HTML. */
static const char *begin_page(struct sink *sink)
{
    const char *html = write_until(sink, page_html, PLACE_OF_STYLE);
    sink_write(sink, page_css, sizeof page_css - 1);
    html = write_until(sink, html, PLACE_OF_DATA);
    sink_write(sink, "{", 1);
    return html;
}

static void end_page(struct sink *sink, const char *html)
{
    sink_write(sink, "}", 1);
    html = write_until(sink, html, PLACE_OF_SCRIPT);
    sink_write(sink, page_js, sizeof page_js - 1);
    sink_write(sink, html, strlen(html));
}

/* Whether the profile has the elapsed time that the page is to show. If not, sets the sink's
 * error. */
static bool can_show(const struct fgprof_profile *profile, struct sink *sink)
{
    bool can = profile->has_elapsed || !(profile->folded_flags & FGPROF_FOLDED_ELAPSED);
    if (!can && !sink->error)
        sink->error = -ENODATA;
    return can;
}

void output_html(const struct fgprof_profile *profile, const struct profile_view *view,
                 struct sink *sink)
{
    if (!can_show(profile, sink))
        return;
    const char *html = begin_page(sink);
    struct json json = {.sink = sink};
    page_data(profile, view, &json);
    page_waits(profile, view, &json);
    write_timelines(profile, view, &json);
    page_report(profile, view, &json);
    end_page(sink, html);
}

/* Writes the page of the profile after, whose data has the profile before as one more member. */
void output_html_difference(const struct profile_pair *pair, bool is_normalized, struct sink *sink)
{
    if (!can_show(pair->before, sink) || !can_show(pair->after, sink))
        return;
    const char *html = begin_page(sink);
    struct json json = {.sink = sink};
    page_data(pair->after, &pair->view_after, &json);
    json_bool(&json, "is_normalized", is_normalized);
    json_begin(&json, "before", '{');
    page_data(pair->before, &pair->view_before, &json);
    json_end(&json, '}');
    end_page(sink, html);
}
