/* The locations of stacks, with their mappings, functions and lines. */
#include "profile/profile.h"
#include "base/array.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int profile_add_function(struct fgprof_profile *profile, const char *name, const char *system_name,
                         const char *file, uint32_t *ret_function)
{
    struct profile_function function;
    if (strings_intern(&profile->strings, name, &function.name) ||
        strings_intern(&profile->strings, system_name, &function.system_name) ||
        strings_intern(&profile->strings, file, &function.file))
        return -ENOMEM;
    return INDEX_INTERN(&profile->function_index, sizeof function, &function, &profile->functions,
                        &profile->function_count, &profile->function_capacity, ret_function);
}

int profile_add_mapping(struct fgprof_profile *profile, const struct profile_mapping *mapping,
                        uint32_t *ret_mapping)
{
    for (size_t i = 0; i < profile->mapping_count; i++) {
        const struct profile_mapping *known = &profile->mappings[i];
        if (known->start == mapping->start && known->limit == mapping->limit &&
            known->offset == mapping->offset && known->path == mapping->path &&
            known->build_id == mapping->build_id) {
            *ret_mapping = (uint32_t)i;
            return 0;
        }
    }
    if (array_append(&profile->mappings, &profile->mapping_count, &profile->mapping_capacity,
                     *mapping))
        return -ENOMEM;
    *ret_mapping = (uint32_t)profile->mapping_count - 1;
    return 0;
}

int profile_append_location(struct fgprof_profile *profile, const struct profile_location *location,
                            uint32_t *ret_location)
{
    if (array_append(&profile->locations, &profile->location_count, &profile->location_capacity,
                     *location))
        return -ENOMEM;
    *ret_location = (uint32_t)profile->location_count - 1;
    return 0;
}

static int add_location(struct fgprof_profile *profile, const struct profile_location *location,
                        uint32_t *ret_location, bool *ret_is_new)
{
    size_t before = profile->location_count;
    int err = INDEX_INTERN(
        &profile->location_index, offsetof(struct profile_location, function_offset), location,
        &profile->locations, &profile->location_count, &profile->location_capacity, ret_location);
    *ret_is_new = profile->location_count > before;
    return err;
}

int profile_add_location(struct fgprof_profile *profile, uint64_t address, uint32_t mapping,
                         uint32_t *ret_location, bool *ret_is_new)
{
    const struct profile_location location = {.address = address, .mapping = mapping};
    return add_location(profile, &location, ret_location, ret_is_new);
}

int profile_add_jit_location(struct fgprof_profile *profile, uint64_t address, uint32_t mapping,
                             uint32_t function, uint32_t *ret_location, bool *ret_is_new)
{
    const struct profile_location location = {
        .address = address, .mapping = mapping, .jit_function_plus_1 = function + 1};
    return add_location(profile, &location, ret_location, ret_is_new);
}

static bool is_same_kernel_function(const void *owner, uint32_t item, const void *key)
{
    const struct fgprof_profile *profile = owner;
    const struct profile_location *known = &profile->locations[item];
    const uint32_t *function = key;
    return known->is_kernel && profile->lines[known->first_line].function == *function;
}

int profile_add_kernel_function(struct fgprof_profile *profile, const char *name,
                                uint32_t *ret_location)
{
    struct profile_line line = {0};
    struct profile_mapping kernel = {0};
    struct profile_location location = {.is_kernel = true};
    int err = profile_add_function(profile, name, name, "", &line.function);
    if (err)
        return err;
    uint64_t hash = hash_bytes(&line.function, sizeof line.function, location.is_kernel);
    *ret_location = index_find(&profile->location_index, hash, is_same_kernel_function, profile,
                               &line.function);
    if (*ret_location != INDEX_NONE)
        return 0;
    /* The name that perf and pprof use. */
    if (strings_intern(&profile->strings, "[kernel.kallsyms]", &kernel.path) ||
        profile_add_mapping(profile, &kernel, &location.mapping) ||
        index_add(&profile->location_index, hash, (uint32_t)profile->location_count))
        return -ENOMEM;
    err = profile_append_location(profile, &location, ret_location);
    return err ? err : profile_set_lines(profile, *ret_location, &line, 1);
}

void made_stack_push(struct made_stack *made, uint32_t location)
{
    if (!made->error)
        made->error = array_append(&made->locations, &made->count, &made->capacity, location);
}

void made_stack_push_stack(struct made_stack *made, uint32_t stack)
{
    const struct profile_stack *from = &made->profile->stacks[stack];
    for (size_t i = 0; i < from->depth; i++)
        made_stack_push(made, made->profile->stack_locations[from->first_location + i]);
}

void made_stack_push_note(struct made_stack *made, const char *format, ...)
{
    char *text = NULL;
    uint32_t note = 0;
    va_list arguments;
    if (made->error)
        return;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    made->error = length < 0 ? -ENOMEM : profile_add_note(made->profile, text, &note);
    made_stack_push(made, note);
    if (length >= 0)
        free(text);
}

int made_stack_add(struct made_stack *made, uint32_t *ret_stack)
{
    if (!made->error)
        made->error = profile_add_stack(made->profile, made->locations, made->count, ret_stack);
    return made->error;
}

static void push_kernel_function(struct made_stack *made, const char *name, size_t bytes)
{
    uint32_t location = 0;
    char *copy = strndup(name, bytes);
    made->error = copy ? profile_add_kernel_function(made->profile, copy, &location) : -ENOMEM;
    made_stack_push(made, location);
    free(copy);
}

int profile_add_kernel_frames(struct fgprof_profile *profile, const char *names, uint32_t *stack)
{
    struct made_stack made = {.profile = profile};
    for (const char *end; (end = strchr(names, '\n')) && !made.error; names = end + 1)
        push_kernel_function(&made, names, (size_t)(end - names));
    if (*stack != PROFILE_NO_STACK)
        made_stack_push_stack(&made, *stack);
    int err = made_stack_add(&made, stack);
    free(made.locations);
    return err;
}

static bool is_same_note(const void *owner, uint32_t item, const void *key)
{
    const struct fgprof_profile *profile = owner;
    const struct profile_location *known = &profile->locations[item];
    const uint32_t *function = key;
    return known->is_note && profile->lines[known->first_line].function == *function;
}

int profile_add_note(struct fgprof_profile *profile, const char *text, uint32_t *ret_location)
{
    struct profile_line line = {0};
    int err = profile_add_function(profile, text, text, "", &line.function);
    if (err)
        return err;
    uint64_t hash = hash_bytes(&line.function, sizeof line.function, 0);
    *ret_location =
        index_find(&profile->location_index, hash, is_same_note, profile, &line.function);
    if (*ret_location != INDEX_NONE)
        return 0;
    struct profile_location note = {.mapping = PROFILE_NO_MAPPING, .is_note = true};
    if (index_add(&profile->location_index, hash, (uint32_t)profile->location_count))
        return -ENOMEM;
    err = profile_append_location(profile, &note, ret_location);
    return err ? err : profile_set_lines(profile, *ret_location, &line, 1);
}

int profile_set_lines(struct fgprof_profile *profile, uint32_t location,
                      const struct profile_line *lines, size_t count)
{
    if (array_reserve(&profile->lines, &profile->line_capacity, profile->line_count + count))
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        profile->lines[profile->line_count + i] = lines[i];
    profile->locations[location].first_line = (uint32_t)profile->line_count;
    profile->locations[location].line_count = (uint32_t)count;
    profile->line_count += count;
    return 0;
}

/* pprof does not symbolize a mapping that claims to be symbolized. So each claim must hold for all
 * sampled locations of the mapping. */
static void set_mapping_claims(struct fgprof_profile *profile)
{
    for (size_t i = 0; i < profile->location_count; i++) {
        const struct profile_location *location = &profile->locations[i];
        if (location->mapping == PROFILE_NO_MAPPING)
            continue;
        struct profile_mapping *mapping = &profile->mappings[location->mapping];
        bool has_name = location->line_count > 0, has_file = has_name, has_line = has_name;
        for (uint32_t j = 0; j < location->line_count; j++) {
            const struct profile_line *line = &profile->lines[location->first_line + j];
            has_file = has_file && profile->functions[line->function].file;
            has_line = has_line && line->line;
        }
        bool is_first = !mapping->is_sampled;
        mapping->is_sampled = true;
        mapping->has_functions = has_name && (is_first || mapping->has_functions);
        mapping->has_files = has_file && (is_first || mapping->has_files);
        mapping->has_lines = has_line && (is_first || mapping->has_lines);
        mapping->has_inlined = location->has_debug_info && (is_first || mapping->has_inlined);
    }
}

static void count_unnamed(struct fgprof_profile *profile)
{
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct profile_stack *stack = &profile->stacks[profile->samples[i].stack];
        for (size_t j = 0; j < stack->depth; j++) {
            if (!stack_location(profile, stack, j)->line_count) {
                profile->summary.samples_unnamed +=
                    profile->samples[i].count + profile->samples[i].made;
                break;
            }
        }
    }
}

void profile_finish(struct fgprof_profile *profile)
{
    set_mapping_claims(profile);
    count_unnamed(profile);
}
