/* Copies both profiles into a new one, in which equal rows become one row. The counts of the
 * earlier profile are negated. Objects have no labels. Each table refers only to tables that are
 * copied before it. */
#include "profile/profile.h"
#include "profile/objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct copying {
    const struct fgprof_profile *from;
    struct fgprof_profile *to;
    uint32_t *processes, *functions, *mappings, *locations, *stacks;
};

static const char *text(const struct copying *copying, uint32_t string)
{
    return strings_get(&copying->from->strings, string);
}

static int copy_string(const struct copying *copying, uint32_t string, uint32_t *ret_string)
{
    return strings_intern(&copying->to->strings, text(copying, string), ret_string);
}

static int copy_processes(const struct copying *copying)
{
    const struct fgprof_profile *from = copying->from;
    struct fgprof_profile *to = copying->to;
    for (size_t i = 0; i < from->process_count; i++) {
        const struct profile_process *process = &from->processes[i];
        uint32_t name, *number = &copying->processes[i];
        if (copy_string(copying, process->name, &name))
            return -ENOMEM;
        for (*number = 0; *number < to->process_count; ++*number) {
            if (to->processes[*number].pid == process->pid && to->processes[*number].name == name)
                break;
        }
        if (*number == to->process_count &&
            (profile_add_process(to, process->pid, text(copying, process->name), number) ||
             copy_string(copying, process->title, &to->processes[*number].title)))
            return -ENOMEM;
    }
    return 0;
}

static int copy_functions(const struct copying *copying)
{
    int err = 0;
    for (size_t i = 0; i < copying->from->function_count && !err; i++) {
        const struct profile_function *function = &copying->from->functions[i];
        err = profile_add_function(copying->to, text(copying, function->name),
                                   text(copying, function->system_name),
                                   text(copying, function->file), &copying->functions[i]);
    }
    return err;
}

static int copy_mappings(const struct copying *copying)
{
    int err = 0;
    for (size_t i = 0; i < copying->from->mapping_count && !err; i++) {
        struct profile_mapping mapping = copying->from->mappings[i];
        err = copy_string(copying, mapping.path, &mapping.path);
        if (!err)
            err = copy_string(copying, mapping.build_id, &mapping.build_id);
        mapping.is_sampled = false; /* profile_finish says what it has */
        mapping.has_functions = mapping.has_files = mapping.has_lines = mapping.has_inlined = false;
        if (!err)
            err = profile_add_mapping(copying->to, &mapping, &copying->mappings[i]);
    }
    return err;
}

/* Whether the location has the same lines as `known`, which is in the new profile. */
static bool has_same_lines(const struct copying *copying, const struct profile_location *location,
                           const struct profile_location *known)
{
    bool is_same = location->line_count == known->line_count;
    for (uint32_t i = 0; i < location->line_count && is_same; i++) {
        const struct profile_line *line = &copying->from->lines[location->first_line + i];
        const struct profile_line *other = &copying->to->lines[known->first_line + i];
        is_same = copying->functions[line->function] == other->function &&
                  line->line == other->line && line->is_inlined == other->is_inlined;
    }
    return is_same;
}

/* Whether the location is the same code as `known`, which has the same address in the new profile.
 * A build id proves that. Without one, the other recording may be of another build of the program,
 * with other functions at the same addresses. */
static bool is_same_code(const struct copying *copying, const struct profile_location *location,
                         const struct profile_location *known)
{
    bool has_build_id =
        known->mapping != PROFILE_NO_MAPPING && copying->to->mappings[known->mapping].build_id;
    return has_build_id || has_same_lines(copying, location, known);
}

/* Sets the lines of a location that is new. */
static int copy_lines(const struct copying *copying, const struct profile_location *location,
                      uint32_t number)
{
    if (!location->line_count)
        return 0;
    struct profile_line *lines = calloc(location->line_count, sizeof *lines);
    if (!lines)
        return -ENOMEM;
    for (uint32_t i = 0; i < location->line_count; i++) {
        lines[i] = copying->from->lines[location->first_line + i];
        lines[i].function = copying->functions[lines[i].function];
    }
    int err = profile_set_lines(copying->to, number, lines, location->line_count);
    free(lines);
    return err;
}

static int copy_place(const struct copying *copying, const struct profile_location *location,
                      uint32_t *ret_number)
{
    struct fgprof_profile *to = copying->to;
    uint32_t jit_plus_1 = location->jit_function_plus_1, mapping = location->mapping;
    bool is_new;
    if (mapping != PROFILE_NO_MAPPING)
        mapping = copying->mappings[mapping];
    int err =
        jit_plus_1
            ? profile_add_jit_location(to, location->address, mapping,
                                       copying->functions[jit_plus_1 - 1], ret_number, &is_new)
            : profile_add_location(to, location->address, mapping, ret_number, &is_new);
    if (!err && !is_new) {
        const struct profile_location known = to->locations[*ret_number];
        if (is_same_code(copying, location, &known))
            return 0;
        const struct profile_location other = {.address = known.address,
                                               .mapping = known.mapping,
                                               .jit_function_plus_1 = known.jit_function_plus_1};
        err = profile_append_location(to, &other, ret_number);
    }
    if (err)
        return err;
    to->locations[*ret_number].function_offset = location->function_offset;
    to->locations[*ret_number].has_debug_info = location->has_debug_info;
    return copy_lines(copying, location, *ret_number);
}

/* The only function of a note or a kernel function; "" if a file lacks it. */
static const char *only_name(const struct copying *copying, const struct profile_location *location)
{
    if (!location->line_count)
        return "";
    const struct profile_line *line = &copying->from->lines[location->first_line];
    return text(copying, copying->from->functions[line->function].name);
}

static int copy_locations(const struct copying *copying)
{
    int err = 0;
    for (size_t i = 0; i < copying->from->location_count && !err; i++) {
        const struct profile_location *location = &copying->from->locations[i];
        uint32_t *number = &copying->locations[i];
        if (location->is_note)
            err = profile_add_note(copying->to, only_name(copying, location), number);
        else if (location->is_kernel)
            err = profile_add_kernel_function(copying->to, only_name(copying, location), number);
        else
            err = copy_place(copying, location, number);
    }
    return err;
}

static int copy_stacks(const struct copying *copying)
{
    const struct fgprof_profile *from = copying->from;
    uint32_t *locations = calloc(from->stack_location_count + 1, sizeof *locations);
    int err = locations ? 0 : -ENOMEM;
    for (size_t i = 0; i < from->stack_count && !err; i++) {
        const struct profile_stack *stack = &from->stacks[i];
        for (size_t j = 0; j < stack->depth; j++)
            locations[j] = copying->locations[from->stack_locations[stack->first_location + j]];
        err = profile_add_stack(copying->to, locations, stack->depth, &copying->stacks[i]);
    }
    free(locations);
    return err;
}

static int copy_samples(const struct copying *copying, bool is_negated)
{
    const struct fgprof_profile *from = copying->from;
    int err = 0;
    for (size_t i = 0; i < from->sample_count && !err; i++) {
        const struct profile_sample *sample = &from->samples[i];
        struct profile_sample made = {
            .stack = copying->stacks[sample->stack],
            .process = from->process_count ? copying->processes[sample->process] : 0,
            .tid = sample->tid,
            .state = sample->state,
            .object_bytes = sample->object_bytes,
            .made = is_negated ? -sample->made : sample->made,
            .gone = is_negated ? -sample->gone : sample->gone,
        };
        err = copy_string(copying, sample->thread_name, &made.thread_name);
        if (!err)
            err = profile_add_sample(copying->to, &made, NULL);
    }
    return err;
}

static int copy(const struct fgprof_profile *from, bool is_negated, struct fgprof_profile *to)
{
    struct copying copying = {
        .from = from,
        .to = to,
        .processes = calloc(from->process_count + 1, sizeof(uint32_t)),
        .functions = calloc(from->function_count + 1, sizeof(uint32_t)),
        .mappings = calloc(from->mapping_count + 1, sizeof(uint32_t)),
        .locations = calloc(from->location_count + 1, sizeof(uint32_t)),
        .stacks = calloc(from->stack_count + 1, sizeof(uint32_t)),
    };
    int err = copying.processes && copying.functions && copying.mappings && copying.locations &&
                      copying.stacks
                  ? 0
                  : -ENOMEM;
    static int (*const copiers[])(const struct copying *) = {
        copy_processes, copy_functions, copy_mappings, copy_locations, copy_stacks};
    for (size_t i = 0; i < sizeof copiers / sizeof *copiers && !err; i++)
        err = copiers[i](&copying);
    if (!err)
        err = copy_samples(&copying, is_negated);
    free(copying.processes);
    free(copying.functions);
    free(copying.mappings);
    free(copying.locations);
    free(copying.stacks);
    return err;
}

static uint64_t end_ns(const struct fgprof_profile *profile)
{
    return profile->start_time_ns + profile->summary.elapsed_ns;
}

static uint64_t more(uint64_t after, uint64_t before)
{
    return after > before ? after - before : 0;
}

/* Sets the summary: differences of counts, and everything else as in the profile after. */
static int set_facts(const struct fgprof_profile *after, const struct fgprof_profile *before,
                     struct fgprof_profile *difference)
{
    difference->is_difference = true;
    difference->kind = after->kind;
    difference->threads = after->threads;
    difference->objects = after->objects;
    difference->objects.made_lost = more(after->objects.made_lost, before->objects.made_lost);
    difference->objects.gone_lost = more(after->objects.gone_lost, before->objects.gone_lost);
    difference->start_time_ns = end_ns(before);
    difference->summary.elapsed_ns = more(end_ns(after), end_ns(before));
    difference->summary.error = after->summary.error;
    difference->summary.allocator_is_own = after->summary.allocator_is_own;
    difference->summary.sees_user_only = after->summary.sees_user_only;
    difference->command = after->command ? strdup(after->command) : NULL;
    difference->recorded_by = after->recorded_by ? strdup(after->recorded_by) : NULL;
    difference->host = after->host ? strdup(after->host) : NULL;
    if ((after->command && !difference->command) ||
        (after->recorded_by && !difference->recorded_by) || (after->host && !difference->host))
        return -ENOMEM;
    return strings_intern(&difference->strings, strings_get(&after->strings, after->objects.name),
                          &difference->objects.name);
}

/* The samples' counts are differences, negative as two's complement. */
int fgprof_profile_subtract(const fgprof_profile *after, const fgprof_profile *before,
                            fgprof_profile **ret_difference)
{
    struct fgprof_profile *difference;
    if (!profile_is_of_objects(after) || after->kind != before->kind ||
        after->objects.rate != before->objects.rate ||
        strcmp(objects_kind_name(after), objects_kind_name(before)) != 0)
        return -EINVAL;
    int err = profile_new(&difference);
    if (err)
        return err;
    err = copy(after, false, difference);
    if (!err)
        err = copy(before, true, difference);
    if (!err)
        err = set_facts(after, before, difference);
    if (err) {
        profile_free(difference);
        return err;
    }
    profile_finish(difference);
    *ret_difference = difference;
    return 0;
}
