#include "cli/options/options.h"
#include "cli/options/formats.h"
#include "cli/record/trigger.h"

#include <stdlib.h>

const char *const kind_names[KIND_NAMES] = {
    [FGPROF_KIND_WALL] = "wall",
    [FGPROF_KIND_CPU] = "cpu",
    [FGPROF_KIND_BLOCK] = "block",
    [FGPROF_KIND_MUTEX] = "mutex",
    [FGPROF_KIND_BLAME] = "blame",
    [FGPROF_KIND_HEAP] = "heap",
    [FGPROF_KIND_ALLOCS] = "allocs",
    [FGPROF_KIND_GROWTH] = "growth",
    [FGPROF_KIND_THREADCREATE] = "threadcreate",
};

void options_free(struct cli_options *options)
{
    free(options->pids);
    free(options->tids);
    free(options->slow_key);
    free(options->command_line);
    for (size_t i = 0; i < options->trigger_count; i++)
        trigger_free(&options->triggers[i]);
    free(options->triggers);
    push_options_free(&options->push);
}

/* How to distinguish threads of equal name: by id for a page, which can merge them itself, for a
 * report, which looks at each thread, for recordings, and for formats that show each thread over
 * time; otherwise as the options say. */
static enum fgprof_threads options_threads(const struct cli_options *options)
{
    return format_of(options->format)->tells_threads ? FGPROF_THREADS_BY_ID : options->threads;
}

fgprof_options *options_for_library(const struct cli_options *options)
{
    fgprof_options *library;
    if (fgprof_options_new(&library))
        return NULL;
    fgprof_options_set_rate(library, (unsigned)options->rate_hz);
    if (options->has_seed)
        fgprof_options_set_seed(library, options->seed);
    fgprof_options_set_duration_ns(library, options->duration_ns);
    fgprof_options_set_max_depth(library, options->max_depth);
    fgprof_options_set_max_pause(library, options->max_pause_percent);
    fgprof_options_set_capture(library, options->capture);
    /* A recorder's conditions are about single threads, whatever its files tell. */
    bool tells_threads = options->command == COMMAND_RECORD || options->critical;
    fgprof_options_set_threads(library,
                               tells_threads ? FGPROF_THREADS_BY_ID : options_threads(options));
    fgprof_options_set_names(library, options->names);
    fgprof_options_set_timeline(library, (options->format == FGPROF_HTML ||
                                          format_of_order(options->format) ||
                                          options->format == FGPROF_RAW || options->critical) &&
                                             !options->slow_key);
    fgprof_options_set_kernel_stacks(library, options->has_kernel_stacks);
    fgprof_options_set_native_frames(library, options->has_native_frames);
    fgprof_options_set_goroutines(library, !options->has_no_goroutines);
    fgprof_options_set_tasks(library, options->has_tasks);
    fgprof_options_set_children(library, options->has_children);
    fgprof_options_set_trace_ids(library, options->has_trace_ids);
    fgprof_options_set_idle(library, !options->drops_idle);
    fgprof_options_set_heap(library, options->heap_rate, options->has_mappings);
    fgprof_options_set_time(library, !options_are_of_objects(options));
    if (options->keep_mib && !options->keep_ns)
        fgprof_options_set_keep(library, 0, options->keep_mib << 20);
    if (options_are_of_objects(options))
        fgprof_options_add_objects(library, options->kind);
    if (options->kind == FGPROF_KIND_CUSTOM)
        fgprof_options_set_duration_ns(library, 1); /* the present state needs no time */
    int err =
        options->thread_regex ? fgprof_options_set_thread_name(library, options->thread_regex) : 0;
    if (!err && options->slow_key)
        err = fgprof_options_set_slow(library, options->slow_key, options->slow_ns);
    for (size_t i = 0; i < options->tid_count && !err; i++)
        err = fgprof_options_add_thread_id(library, options->tids[i]);
    if (err) {
        fgprof_options_free(library);
        return NULL;
    }
    return library;
}

/* A recording of time is of wall-clock time, and can be written as any other kind later. */
static int set_kind(const struct cli_options *options, fgprof_profile *profile)
{
    bool stays = options->format == FGPROF_RAW && options->kind < FGPROF_KIND_HEAP &&
                 fgprof_profile_kind(profile) == FGPROF_KIND_WALL;
    return stays || !options->has_kind ? 0 : fgprof_profile_set_kind(profile, options->kind);
}

int options_for_profile(const struct cli_options *options, fgprof_profile *profile)
{
    bool shows_threads = options->shows_threads || options->kind == FGPROF_KIND_BLAME ||
                         options->critical ||
                         fgprof_profile_kind(profile) == FGPROF_KIND_THREADCREATE;
    unsigned flags = (shows_threads ? FGPROF_FOLDED_THREADS : 0u) |
                     (options->shows_lines ? FGPROF_FOLDED_LINES : 0u) |
                     (options->shows_state ? FGPROF_FOLDED_STATE : 0u) |
                     (options->shows_processes ? FGPROF_FOLDED_PROCESSES : 0u) |
                     (options->shows_elapsed ? FGPROF_FOLDED_ELAPSED : 0u);
    int err = fgprof_profile_set_folded_flags(profile, flags);
    for (size_t i = 0; i < options->label_count && !err; i++)
        err = fgprof_profile_add_root_label(profile, options->labels[i]);
    if (!err)
        err = fgprof_profile_set_kept(profile, options->kept);
    if (!err)
        err = set_kind(options, profile);
    if (!err)
        err = fgprof_profile_set_threads(profile, options_threads(options));
    return err ? err : fgprof_profile_set_command(profile, options->command_line);
}
