#include "profile/makers.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The call that creates a thread is among this many frames at the leaf. */
#define CALLS_MAX 12

/* Whether the function starts threads in any program, or belongs to the standard library of C++,
 * Rust or Go. */
static bool is_name_of_library(const char *name)
{
    static const char *const names[] = {
        "__clone",      "__clone3",
        "clone",        "clone3",
        "start_thread", "start", /* musl */
        "thread_start", "execute_native_thread_routine",
        "thread_proxy", "__rust_begin_short_backtrace",
    };
    static const char *const beginnings[] = {
        "std::",   "core::",   "alloc::", "<std::", "<core::", "<alloc::", "__gnu_cxx::",
        "boost::", "runtime.", "_ZNSt",   "_ZNKSt", "_ZSt",    "_ZN3std",  "_ZN4core",
    };
    return text_is_any(name, names, COUNT_OF(names)) ||
           text_begins_any(name, beginnings, COUNT_OF(beginnings));
}

/* Inlined functions have names without namespaces. */
static bool is_file_of_library(const char *file)
{
    static const char *const beginnings[] = {"/usr/include/", "/usr/lib/", "/rustc/"};
    return text_begins_any(file, beginnings, COUNT_OF(beginnings));
}

static bool is_line_of_library(const struct fgprof_profile *profile,
                               const struct profile_line *line)
{
    const struct profile_function *function = &profile->functions[line->function];
    return is_name_of_library(strings_get(&profile->strings, function->name)) ||
           is_file_of_library(strings_get(&profile->strings, function->file));
}

/* The first mapping is the program's own. Code without a name is judged by its mapping. */
static bool is_of_library(const struct fgprof_profile *profile, uint32_t number)
{
    const struct profile_location *location = &profile->locations[number];
    for (uint32_t i = 0; i < location->line_count; i++) {
        if (!is_line_of_library(profile, &profile->lines[location->first_line + i]))
            return false;
    }
    return location->line_count || location->mapping != 0;
}

static const uint32_t *locations_of(const struct fgprof_profile *profile, uint32_t stack)
{
    return &profile->stack_locations[profile->stacks[stack].first_location];
}

/* The name of the outermost function at the location. */
static const char *outer_name(const struct fgprof_profile *profile, uint32_t number)
{
    const struct profile_location *location = &profile->locations[number];
    if (!location->line_count)
        return "";
    const struct profile_line *line =
        &profile->lines[location->first_line + location->line_count - 1];
    return strings_get(&profile->strings, profile->functions[line->function].name);
}

/* Includes libc's internal names and the wrappers of sanitizers. */
static bool makes_threads(const char *name)
{
    return strcmp(name, "pthread_create") == 0 || strcmp(name, "thrd_create") == 0 ||
           (*name == '_' && text_ends(name, "pthread_create"));
}

static bool is_system_call(const char *name)
{
    static const char *const names[] = {"__clone", "__clone3",         "clone",
                                        "clone3",  "__clone_internal", "__GI___clone_internal"};
    return text_is_any(name, names, COUNT_OF(names));
}

/* Counts the frames at the leaf that belong to the call that created the thread. */
static size_t count_calls(const struct fgprof_profile *profile, uint32_t stack)
{
    const uint32_t *locations = locations_of(profile, stack);
    size_t depth = profile->stacks[stack].depth, calls = 0;
    for (size_t i = 0; i < depth && i < CALLS_MAX; i++) {
        const char *name = outer_name(profile, locations[i]);
        if (makes_threads(name) || (i == calls && is_system_call(name)))
            calls = i + 1;
    }
    return calls;
}

/* Copies the locations, because the profile's own array may move. */
static int replace(struct fgprof_profile *profile, size_t first, size_t depth, uint32_t *stack)
{
    const struct profile_stack *whole = &profile->stacks[*stack];
    uint32_t *locations = NULL;
    size_t capacity = 0;
    if (depth == whole->depth)
        return 0;
    if (array_reserve(&locations, &capacity, depth))
        return -ENOMEM;
    memcpy(locations, locations_of(profile, *stack) + first, depth * sizeof *locations);
    int err = profile_add_stack(profile, locations, depth, stack);
    free(locations);
    return err;
}

int makers_drop_calls(struct fgprof_profile *profile, uint32_t *stack)
{
    size_t depth = profile->stacks[*stack].depth, calls = count_calls(profile, *stack);
    return calls < depth ? replace(profile, calls, depth - calls, stack) : 0;
}

int makers_keep_start(struct fgprof_profile *profile, uint32_t *stack)
{
    const uint32_t *locations = locations_of(profile, *stack);
    size_t depth = profile->stacks[*stack].depth, first = depth, start = depth;
    while (first > 0 && profile->locations[locations[first - 1]].is_note)
        first--;
    for (start = first; start > 0 && is_of_library(profile, locations[start - 1]); start--)
        ;
    /* If all frames are from libraries, keeps the first. */
    start = start ? start - 1 : first ? first - 1 : 0;
    return first ? replace(profile, start, depth - start, stack) : 0;
}

/* The location nearest to the leaf that is not in a library. The stack must not be empty. */
static uint32_t makers_main_location(const struct fgprof_profile *profile, uint32_t stack)
{
    const uint32_t *locations = locations_of(profile, stack);
    size_t depth = profile->stacks[stack].depth;
    for (size_t i = 0; i < depth; i++) {
        if (!is_of_library(profile, locations[i]) && !profile->locations[locations[i]].is_note)
            return locations[i];
    }
    return *locations;
}

const char *makers_main_function(const struct fgprof_profile *profile, uint32_t stack)
{
    if (!profile->stacks[stack].depth)
        return "";
    const struct profile_location *location =
        &profile->locations[makers_main_location(profile, stack)];
    if (location->is_note || !location->line_count)
        return "";
    /* The innermost inlined call that is not in a library. */
    const struct profile_line *line = &profile->lines[location->first_line];
    uint32_t left = location->line_count - 1;
    for (; left > 0 && is_line_of_library(profile, line); left--)
        line++;
    return strings_get(&profile->strings, profile->functions[line->function].name);
}
