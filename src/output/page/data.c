/* The profile's tables, which refer to each other by number:
 *   processes  [pid, name]
 *   strings    each text once; 0 in place of one that nothing refers to
 *   locations  [module, flags, function, file, line, ...]: the last three for each function that is
 *              there, innermost first; if none is known, a text in place of them
 *   stacks     [location, ...], leaf first
 *   samples    [stack, thread name, tid, state, syscall, wait channel, count, time_ns, process,
 *              elapsed_ns, labels, value, ...]: what follows the process only if the profile has
 *              it; labels is the number of a row of `labels`, from 1 on, or 0 for none; the values
 *              are an object's, one of each type
 *   labels     [key, value, ...], sorted by key; left out if there are none
 *   parallel   [ns, ...]: how long 0, 1, ... threads of a process ran at once; left out if that is
 *              not known
 *   objects    {kind, types, shown, ...}: of a profile of objects, the types [name, unit] and the
 *              number of the one that is shown first; else left out
 *   births     [tid, maker, function] of threads, as struct profile_birth; left out if there are
 *              none */
#include "output/page/data.h"
#include "output/frame.h"
#include "output/json.h"
#include "output/state.h"
#include "profile/objects.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { FLAG_KERNEL = 1, FLAG_JIT = 2, FLAG_NOTE = 4 }; /* as in page/data.js */

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
        used[profile->processes[i].name] = true;
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
    }
    return used;
}

static void write_strings(const struct fgprof_profile *profile, const struct profile_view *view,
                          struct sink *sink)
{
    bool *used = used_strings(profile, view);
    if (!used) {
        sink->error = sink->error ? sink->error : -ENOMEM;
        return;
    }
    json_key(sink, "strings", false);
    for (size_t i = 0; i < profile->strings.count; i++) {
        sink_write(sink, i ? "," : "[", 1);
        if (used[i])
            json_string(sink, strings_get(&profile->strings, (uint32_t)i));
        else
            sink_write(sink, "0", 1);
    }
    sink_write(sink, "]", 1);
    free(used);
}

static void write_location(const struct fgprof_profile *profile,
                           const struct profile_location *location, struct sink *sink)
{
    unsigned flags = (location->is_kernel ? FLAG_KERNEL : 0u) |
                     (location->jit_function_plus_1 ? FLAG_JIT : 0u) |
                     (location->is_note ? FLAG_NOTE : 0u);
    sink_print(sink, "[%" PRIu32 ",%u", module_of(profile, location), flags);
    for (uint32_t i = 0; i < location->line_count; i++) {
        const struct profile_line *line = &profile->lines[location->first_line + i];
        const struct profile_function *function = &profile->functions[line->function];
        sink_print(sink, ",%" PRIu32 ",%" PRIu32 ",%" PRIu32, function->name, function->file,
                   line->line);
    }
    if (!location->line_count) {
        struct buffer name = {0};
        frame_append_unnamed(&name, profile, location, false);
        sink_write(sink, ",", 1);
        json_string(sink, name.bytes ? name.bytes : "");
        buffer_free(&name);
    }
    sink_write(sink, "]", 1);
}

static void write_locations(const struct fgprof_profile *profile, struct sink *sink)
{
    json_key(sink, "locations", false);
    sink_write(sink, "[", 1);
    for (size_t i = 0; i < profile->location_count; i++) {
        sink_write(sink, ",", i > 0);
        write_location(profile, &profile->locations[i], sink);
    }
    sink_write(sink, "]", 1);
}

static void write_stacks(const struct fgprof_profile *profile, struct sink *sink)
{
    json_key(sink, "stacks", false);
    sink_write(sink, "[", 1);
    for (size_t i = 0; i < profile->stack_count; i++) {
        const struct profile_stack *stack = &profile->stacks[i];
        sink_write(sink, ",[", i > 0 ? 2 : 0);
        sink_write(sink, "[", i == 0);
        for (size_t j = 0; j < stack->depth; j++)
            sink_print(sink, "%s%" PRIu32, j ? "," : "",
                       profile->stack_locations[stack->first_location + j]);
        sink_write(sink, "]", 1);
    }
    sink_write(sink, "]", 1);
}

static void write_values(const struct fgprof_profile *profile, const struct profile_sample *sample,
                         struct sink *sink)
{
    struct object_type types[OBJECT_TYPES_MAX];
    size_t count = objects_types(profile, types);
    for (size_t i = 0; i < count; i++)
        sink_print(sink, ",%" PRId64, objects_value(profile, sample, types[i].measure));
}

static void write_samples(const struct fgprof_profile *profile, const struct profile_view *view,
                          struct sink *sink)
{
    json_key(sink, "samples", false);
    sink_write(sink, "[", 1);
    for (size_t i = 0; i < view->sample_count; i++) {
        const struct profile_sample *sample = &view->samples[i];
        sink_print(sink,
                   "%s%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32
                   ",%" PRIu64 ",%" PRIu64 ",%" PRIu32,
                   i ? ",[" : "[", sample->stack, sample->thread_name, sample->tid, sample->state,
                   sample->syscall_name, sample->wait_channel, sample->count, sample->time_ns,
                   sample->process);
        bool is_of_objects = profile_is_of_objects(profile);
        if (profile->has_elapsed || profile->label_set_count || is_of_objects)
            sink_print(sink, ",%" PRIu64, sample->elapsed_ns);
        if (profile->label_set_count || is_of_objects)
            sink_print(sink, ",%" PRIu32, sample->label_set_plus_1);
        if (is_of_objects)
            write_values(profile, sample, sink);
        sink_write(sink, "]", 1);
    }
    sink_write(sink, "]", 1);
}

static void write_labels(const struct fgprof_profile *profile, struct sink *sink)
{
    if (!profile->label_set_count)
        return;
    json_key(sink, "labels", false);
    for (size_t i = 0; i < profile->label_set_count; i++) {
        const struct profile_label_set *set = &profile->label_sets[i];
        sink_print(sink, "%s", i ? ",[" : "[[");
        for (uint32_t j = 0; j < set->label_count; j++) {
            const struct profile_label *label = &profile->labels[set->first_label + j];
            sink_print(sink, "%s%" PRIu32 ",%" PRIu32, j ? "," : "", label->key, label->value);
        }
        sink_write(sink, "]", 1);
    }
    sink_write(sink, "]", 1);
}

static void write_births(const struct fgprof_profile *profile, struct sink *sink)
{
    if (!profile->birth_count || profile->threads == FGPROF_THREADS_BY_NAME)
        return;
    json_key(sink, "births", false);
    for (size_t i = 0; i < profile->birth_count; i++) {
        const struct profile_birth *birth = &profile->births[i];
        sink_print(sink, "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", i ? "," : "[", birth->tid,
                   birth->maker, birth->function);
    }
    sink_write(sink, "]", 1);
}

static void write_elapsed(const struct fgprof_profile *profile, struct sink *sink)
{
    bool is_first_shown = profile->folded_flags & FGPROF_FOLDED_ELAPSED;
    json_key(sink, "has_elapsed", false);
    sink_print(sink, "%s", profile->has_elapsed ? "true" : "false");
    json_key(sink, "shows_elapsed", false);
    sink_print(sink, "%s", is_first_shown ? "true" : "false");
    json_key(sink, "parallel", false);
    sink_write(sink, "[", 1);
    for (size_t i = 0; i < profile->parallel_count; i++)
        sink_print(sink, "%s%" PRIu64, i ? "," : "", profile->parallel_ns[i]);
    sink_write(sink, "]", 1);
}

static void write_processes(const struct fgprof_profile *profile, struct sink *sink)
{
    json_key(sink, "processes", false);
    sink_write(sink, "[", 1);
    for (size_t i = 0; i < profile->process_count; i++)
        sink_print(sink, "%s[%" PRIu32 ",%" PRIu32 "]", i ? "," : "", profile->processes[i].pid,
                   profile->processes[i].name);
    sink_write(sink, "]", 1);
}

static void write_states(struct sink *sink)
{
    json_key(sink, "states", false);
    for (uint32_t i = 0; i < THREAD_STATE_COUNT; i++) {
        sink_write(sink, i ? "," : "[", 1);
        json_string(sink, state_name(i));
    }
    sink_write(sink, "]", 1);
}

static void write_summary(const struct fgprof_profile *profile, struct sink *sink)
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
    json_key(sink, "summary", false);
    sink_write(sink, "{", 1);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_number(sink, numbers[i].key, numbers[i].number, i == 0);
    sink_write(sink, "}", 1);
    json_key(sink, "kept", false);
    json_string(sink, profile_kept_name(profile));
}

/* Left out if there are none. */
static void write_deadlocks(const struct fgprof_profile *profile, struct sink *sink)
{
    if (!profile->deadlock_count)
        return;
    json_key(sink, "deadlocks", false);
    for (size_t i = 0; i < profile->deadlock_count; i++) {
        sink_write(sink, i ? "," : "[", 1);
        json_string(sink, strings_get(&profile->strings, profile->deadlocks[i]));
    }
    sink_write(sink, "]", 1);
}

static void write_objects(const struct fgprof_profile *profile, const struct profile_view *view,
                          struct sink *sink)
{
    const struct profile_objects *objects = &profile->objects;
    struct object_type types[OBJECT_TYPES_MAX];
    size_t count = objects_types(profile, types);
    uint64_t seen = 0;
    for (size_t i = 0; i < view->sample_count; i++)
        seen += view->samples[i].made;
    json_key(sink, "objects", false);
    sink_write(sink, "{", 1);
    json_key(sink, "kind", true);
    json_string(sink, objects_kind_name(profile));
    json_key(sink, "types", false);
    for (size_t i = 0; i < count; i++) {
        sink_print(sink, i ? ",[" : "[[");
        json_string(sink, types[i].name);
        sink_print(sink, ",\"%s\"]", types[i].unit);
    }
    sink_write(sink, "]", 1);
    json_number(sink, "shown", objects_main_type(profile), false);
    json_number(sink, "rate", objects->rate, false);
    json_number(sink, "seen", seen, false);
    json_number(sink, "made_lost", objects->made_lost, false);
    json_number(sink, "gone_lost", objects->gone_lost, false);
    json_number(sink, "resident_peak", objects->resident_peak, false);
    json_number(sink, "heap_arena", objects->heap_arena, false);
    json_number(sink, "heap_mmap", objects->heap_mmap, false);
    json_number(sink, "heap_used", objects->heap_used, false);
    json_number(sink, "heap_free", objects->heap_free, false);
    json_number(sink, "allocator_is_own", profile->summary.allocator_is_own, false);
    sink_write(sink, "}", 1);
}

static void write_reason(const struct fgprof_profile *profile, struct sink *sink)
{
    if (!profile->reason)
        return;
    json_key(sink, "reason", false);
    json_string(sink, profile->reason);
}

void page_data(const struct fgprof_profile *profile, const struct profile_view *view,
               struct sink *sink)
{
    json_number(sink, "version", 1, true);
    json_key(sink, "command", false);
    json_string(sink, profile->command ? profile->command : "");
    json_key(sink, "recorded_by", false);
    json_string(sink, profile_recorded_by(profile));
    json_number(sink, "start_time_ns", profile->start_time_ns, false);
    json_number(sink, "elapsed_ns", profile->summary.elapsed_ns, false);
    json_number(sink, "period_ns", profile->period_ns, false);
    write_summary(profile, sink);
    write_deadlocks(profile, sink);
    write_reason(profile, sink);
    if (profile_is_of_objects(profile))
        write_objects(profile, view, sink);
    write_elapsed(profile, sink);
    write_states(sink);
    write_processes(profile, sink);
    write_strings(profile, view, sink);
    write_locations(profile, sink);
    write_stacks(profile, sink);
    write_labels(profile, sink);
    write_births(profile, sink);
    write_samples(profile, view, sink);
}

static void write_wait(const struct fgprof_profile *profile, const struct profile_wait *wait,
                       struct sink *sink)
{
    bool tells_threads = profile->threads != FGPROF_THREADS_BY_NAME;
    sink_print(sink, "[%" PRIu32 ",%" PRIu32, wait->kind, wait->resource);
    if (wait->owner_process != PROFILE_NO_OWNER)
        sink_print(sink, ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32,
                   wait->owner_process, wait->owner_name, tells_threads ? wait->owner_tid : 0,
                   wait->owner_stack == PROFILE_NO_STACK ? 0 : wait->owner_stack + 1,
                   wait->owner_wait_plus_1);
    sink_write(sink, "]", 1);
}

/* What threads waited for. "waits" has rows of
 *   kind, resource, and if there is an owner: its process, its name, its tid, its stack + 1, and
 *   the number + 1 of the earlier row that says what it waited for itself
 * with 0 for what is not known. "sample_waits" has for each sample the number + 1 of its row; 0:
 * its thread waited for nothing, or that is not known. */
void page_waits(const struct fgprof_profile *profile, const struct profile_view *view,
                struct sink *sink)
{
    bool has_waits = false;
    for (size_t i = 0; i < view->sample_count && !has_waits; i++)
        has_waits = view->samples[i].wait_plus_1;
    if (!has_waits)
        return;
    json_key(sink, "waits", false);
    sink_write(sink, "[", 1);
    for (size_t i = 0; i < profile->wait_count; i++) {
        sink_write(sink, ",", i > 0);
        write_wait(profile, &profile->waits[i], sink);
    }
    sink_write(sink, "]", 1);
    json_key(sink, "sample_waits", false);
    sink_write(sink, "[", 1);
    for (size_t i = 0; i < view->sample_count; i++)
        sink_print(sink, "%s%" PRIu32, i ? "," : "", view->samples[i].wait_plus_1);
    sink_write(sink, "]", 1);
}
