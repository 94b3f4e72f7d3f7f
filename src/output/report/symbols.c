/* The modules whose symbols would name frames or complete stacks, and why stacks are cut. */
#include "output/report/report.h"
#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A row for each path that a mapping has, in the order of the profile's mappings. */
struct modules {
    struct report_module *rows;
    uint32_t *of_path; /* by string of the profile: its row's number + 1; 0: none yet */
    size_t count;
};

/* Whether symbols could be had for it: it is a file, and not generated code or the kernel. */
static bool is_file(const char *path)
{
    return path[0] == '/' && strncmp(path, "/dev/", 5) != 0 && strncmp(path, "/memfd:", 7) != 0;
}

static void add_mapping(const struct fgprof_profile *profile, size_t mapping,
                        struct modules *modules)
{
    const struct profile_mapping *row = &profile->mappings[mapping];
    if (modules->of_path[row->path])
        return;
    modules->rows[modules->count++] =
        (struct report_module){.path = row->path, .build_id = row->build_id};
    modules->of_path[row->path] = (uint32_t)modules->count;
}

static struct report_module *module_of(const struct fgprof_profile *profile, uint32_t mapping,
                                       struct modules *modules)
{
    return &modules->rows[modules->of_path[profile->mappings[mapping].path] - 1];
}

/* Whether code there was made at run time: it is in no file, and not of the kernel as [vdso] is. */
static bool is_generated(const struct fgprof_profile *profile, uint32_t mapping)
{
    const char *path = mapping == PROFILE_NO_MAPPING
                           ? ""
                           : strings_get(&profile->strings, profile->mappings[mapping].path);
    return text_begins(path, "[anon") || (path[0] != '[' && !is_file(path));
}

/* Counts the samples of a stack for where its first frame without a name is, from the leaf on. */
static void count_unnamed(struct report *report, const struct profile_stack *stack, uint64_t count,
                          struct modules *modules)
{
    const struct fgprof_profile *profile = report->profile;
    for (size_t i = 0; i < stack->depth; i++) {
        const struct profile_location *location = stack_location(profile, stack, i);
        if (location->line_count)
            continue;
        if (is_generated(profile, location->mapping))
            report->samples_generated_unnamed += count;
        else
            module_of(profile, location->mapping, modules)->samples_unnamed += count;
        return;
    }
}

/* The note in place of a stack's missing frames, as a string of the profile; "": it is whole. */
static uint32_t note_of(const struct fgprof_profile *profile, const struct profile_stack *stack)
{
    if (!stack->depth)
        return 0;
    size_t last = stack->first_location + stack->depth - 1;
    const struct profile_location *end = &profile->locations[profile->stack_locations[last]];
    if (!end->is_note || !end->line_count)
        return 0;
    return profile->functions[profile->lines[end->first_line].function].name;
}

/* The row of the last frame of a stack that is cut because unwind tables are missing. */
static struct report_module *module_that_cuts(const struct fgprof_profile *profile,
                                              const struct profile_stack *stack,
                                              struct modules *modules)
{
    static const char note[] = "[truncated: no unwind info";
    const char *name = strings_get(&profile->strings, note_of(profile, stack));
    if (stack->depth < 2 || !text_begins(name, note))
        return NULL;
    size_t before = stack->first_location + stack->depth - 2;
    uint32_t mapping = profile->locations[profile->stack_locations[before]].mapping;
    return mapping == PROFILE_NO_MAPPING ? NULL : module_of(profile, mapping, modules);
}

/* Chooses the note of most samples. `samples`: room for a number for each string. */
static void choose_note(struct report *report, uint64_t *samples)
{
    for (size_t i = 0; i < report->view->sample_count; i++) {
        const struct profile_sample *sample = &report->view->samples[i];
        uint32_t note = note_of(report->profile, &report->profile->stacks[sample->stack]);
        samples[note] += note ? sample->count : 0;
        if (samples[note] > samples[report->cut_note])
            report->cut_note = note;
    }
}

/* Most cut stacks first, then most unnamed frames, then by path. */
static int compare(const void *a, const void *b)
{
    const struct report_module *left = a, *right = b;
    int order = ORDER(right->samples_cut, left->samples_cut);
    if (!order)
        order = ORDER(right->samples_unnamed, left->samples_unnamed);
    return order ? order : ORDER(left->path, right->path);
}

static void choose(struct report *report, struct modules *modules)
{
    size_t count = 0;
    for (size_t i = 0; i < modules->count; i++) {
        const struct report_module *row = &modules->rows[i];
        if ((row->samples_cut || row->samples_unnamed) &&
            is_file(strings_get(&report->profile->strings, row->path)))
            modules->rows[count++] = *row;
    }
    array_sort(modules->rows, count, compare);
    for (; report->module_count < count && report->module_count < REPORT_MODULES_MAX;
         report->module_count++)
        report->modules[report->module_count] = modules->rows[report->module_count];
    report->modules_left_out = count - report->module_count;
}

int report_find_modules(struct report *report)
{
    const struct fgprof_profile *profile = report->profile;
    struct modules modules = {
        .rows = calloc(profile->mapping_count + 1, sizeof *modules.rows),
        .of_path = calloc(profile->strings.count, sizeof *modules.of_path),

    };
    uint64_t *by_note = calloc(profile->strings.count, sizeof *by_note);
    int err = modules.rows && modules.of_path && by_note ? 0 : -ENOMEM;
    for (size_t i = 0; i < profile->mapping_count && !err; i++)
        add_mapping(profile, i, &modules);
    for (size_t i = 0; i < report->view->sample_count && !err; i++) {
        const struct profile_sample *sample = &report->view->samples[i];
        const struct profile_stack *stack = &profile->stacks[sample->stack];
        struct report_module *cut = module_that_cuts(profile, stack, &modules);
        count_unnamed(report, stack, sample->count, &modules);
        if (cut)
            cut->samples_cut += sample->count;
    }
    if (!err) {
        choose(report, &modules);
        choose_note(report, by_note);
    }
    free(by_note);
    free(modules.rows);
    free(modules.of_path);
    return err;
}
