#include "profile/build.h"
#include "profile/allocators.h"
#include "profile/makers.h"
#include "profile/name_waits.h"
#include "base/array.h"
#include "objects/source.h"
#include "proc/syscall_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct naming {
    struct fgprof_profile *profile;
    const struct counted *counted;
    const struct name_sources *sources;
    struct unnamed unnamed;
    uint32_t *locations; /* of the present stack */
    size_t location_capacity;
    uint32_t *processes; /* by a counted process's number: its number in the profile + 1; 0: it has
                            no samples yet */
    uint32_t *stacks;    /* by a counted stack's number: its number in the profile; for objects that
                            + 1, and 0: not in it yet */
    const uint32_t *skips; /* by a counted stack's number: how many of its first frames are left
                              out; NULL: none */
    uint32_t *samples;     /* the same for counted samples */
    uint32_t *makers;      /* by the number of a maker of objects: its stack in the profile */
    uint32_t *waits;       /* by a counted wait's number: its number in the profile + 1 */
    uint32_t *
        label_sets; /* by a counted set's number: its number in the profile + 1; 0: not there yet */
    uint32_t **mappings; /* by space and mapping: its number in the profile + 1; 0: not there yet */
    uint64_t *elapsed_ns; /* by a counted sample's number: its part of its process's time */
    uint64_t *idle_ns;    /* by a counted process's number: what is left of that */
};

static const char *const notes[STACK_CUT_COUNT] = {
    [STACK_CUT_AT_MAX_DEPTH] = "[truncated: max depth]",
    [STACK_CUT_NO_UNWIND_INFO] = "[truncated: no unwind info]",
    [STACK_CUT_NO_REGISTER] = "[truncated: frame pointer not known]",
    [STACK_CUT_UNREADABLE] = "[truncated: stack unreadable]",
    [STACK_CUT_NOT_CAPTURED] = "[truncated: thread not observed in time]",
    [STACK_CUT_NOT_KEPT] = "[truncated: stack not kept]",
    [STACK_CUT_UNREAD] = "[truncated: unwind info not read]",
    [STACK_KERNEL_ONLY] = "[kernel worker]",
};

/* Notes above the leaf of a stack that made an object. */
static const char *const origins[ORIGIN_COUNT] = {
    [ORIGIN_LATER] = "[creator seen later]",
    [ORIGIN_UNSEEN] = "[creator not seen]",
    [ORIGIN_BEFORE] = "[started before the recording]",
    [ORIGIN_MAIN] = "[main thread]",
};

static int add_mapping(struct naming *naming, const struct mapping *mapping, uint32_t *ret_mapping)
{
    struct strings *strings = &naming->profile->strings;
    const struct module *module = mapping->module;
    char build_id[2 * sizeof module->build_id + 1] = "";
    struct profile_mapping row = {
        .start = mapping->start,
        .limit = mapping->end,
        .offset = mapping->offset,
        .bias = mapping->bias,
        .has_bias = mapping->has_bias,
    };
    for (size_t i = 0; module && i < module->build_id_bytes; i++)
        snprintf(&build_id[2 * i], 3, "%02x", module->build_id[i]);
    if (strings_intern(strings, *mapping->path ? mapping->path : "[anon]", &row.path) ||
        strings_intern(strings, build_id, &row.build_id))
        return -ENOMEM;
    return profile_add_mapping(naming->profile, &row, ret_mapping);
}

/* Finds the profile's mapping for one of the space, or adds it. */
static int mapping_of(struct naming *naming, const struct space *space,
                      const struct mapping *mapping, uint32_t *ret_mapping)
{
    uint32_t **known = &naming->mappings[space->id];
    size_t number = (size_t)(mapping - space->mappings);
    if (!*known && !(*known = calloc(space->mapping_count, sizeof **known)))
        return -ENOMEM;
    if (!(*known)[number]) {
        int err = add_mapping(naming, mapping, ret_mapping);
        if (err)
            return err;
        (*known)[number] = *ret_mapping + 1;
    }
    *ret_mapping = (*known)[number] - 1;
    return 0;
}

/* pprof takes the first mapping to be the main binary. */
static int add_main_mapping(struct naming *naming)
{
    for (size_t i = 0; i < naming->counted->spaces->count; i++) {
        const struct space *space = naming->counted->spaces->items[i];
        for (size_t j = 0; j < space->mapping_count; j++) {
            uint32_t number;
            if (space->mappings[j].is_main)
                return mapping_of(naming, space, &space->mappings[j], &number);
        }
    }
    return 0;
}

static int add_runtime_location(struct naming *naming, const struct runtime_frame *frame,
                                uint64_t address, uint32_t *ret_location)
{
    const struct strings *strings = &naming->counted->runtime_frames->strings;
    const char *name = strings_get(strings, frame->name);
    struct profile_line line = {.line = frame->line};
    bool is_new;
    /* pprof removes what is in <> from a name that equals its symbol, and here it is "<module>". */
    int err = profile_add_function(naming->profile, name, "", strings_get(strings, frame->file),
                                   &line.function);
    if (!err)
        err = profile_add_location(naming->profile, address, PROFILE_NO_MAPPING, ret_location,
                                   &is_new);
    return err || !is_new ? err : profile_set_lines(naming->profile, *ret_location, &line, 1);
}

static int add_location(struct naming *naming, struct space *space, uint64_t address,
                        uint32_t *ret_location)
{
    const struct mapping *mapping = space_find(space, address);
    const struct runtime_frame *frame =
        mapping ? NULL : runtime_frames_find(naming->counted->runtime_frames, address);
    if (frame)
        return add_runtime_location(naming, frame, address, ret_location);
    if (mapping && space->jit && jit_find(space->jit, space->id, address))
        return name_jit_location(naming->profile, naming->sources, space, mapping, address,
                                 ret_location);
    uint32_t mapping_number = PROFILE_NO_MAPPING;
    bool is_new;
    int err = mapping ? mapping_of(naming, space, mapping, &mapping_number) : 0;
    if (!err)
        err = profile_add_location(naming->profile, address, mapping_number, ret_location, &is_new);
    /* A module that can't be read has no addresses of its own, but must still be reported. */
    if (err || !is_new || !mapping || !mapping->module ||
        (mapping->module->is_readable && !mapping->has_bias))
        return err;
    return unnamed_add(&naming->unnamed, mapping->module, address - mapping->bias, *ret_location);
}

/* Adds a note that says why the stack ends, and in which module if that matters. */
static int add_note(struct naming *naming, const struct counted_stack *stack,
                    uint32_t *ret_location)
{
    const char *note = notes[stack->cut];
    bool is_of_module = stack->cut == STACK_CUT_NO_UNWIND_INFO ||
                        stack->cut == STACK_CUT_NO_REGISTER || stack->cut == STACK_CUT_UNREAD;
    const struct mapping *mapping = NULL;
    if (is_of_module && stack->depth)
        mapping =
            space_find(naming->counted->spaces->items[stack->space],
                       naming->counted->table->addresses[stack->first_address + stack->depth - 1]);
    if (!mapping || !mapping->module)
        return profile_add_note(naming->profile, note, ret_location);
    const char *why = mapping->module->unread;
    if (why && !mapping->module->is_readable)
        note = notes[STACK_CUT_UNREAD];
    if (why && profile_add_unreadable(naming->profile, mapping->path, why))
        return -ENOMEM;
    char *text;
    if (asprintf(&text, "%.*s in %s]", (int)strlen(note) - 1, note, basename(mapping->path)) < 0)
        return -ENOMEM;
    int err = profile_add_note(naming->profile, text, ret_location);
    free(text);
    return err;
}

/* `origin`: a note above the leaf, or NULL. */
static int add_stack(struct naming *naming, const struct counted_stack *stack, const char *origin,
                     uint32_t *ret_stack)
{
    size_t depth = 0;
    size_t skip = naming->skips ? naming->skips[stack - naming->counted->table->stacks] : 0;
    if (array_reserve(&naming->locations, &naming->location_capacity, stack->depth + 2))
        return -ENOMEM;
    for (size_t i = skip; i < stack->depth; i++) {
        int err = add_location(naming, naming->counted->spaces->items[stack->space],
                               naming->counted->table->addresses[stack->first_address + i],
                               &naming->locations[depth++]);
        if (err)
            return err;
    }
    if (notes[stack->cut]) {
        int err = add_note(naming, stack, &naming->locations[depth++]);
        if (err)
            return err;
    }
    if (origin) {
        int err = profile_add_note(naming->profile, origin, &naming->locations[depth++]);
        if (err)
            return err;
    }
    return profile_add_stack(naming->profile, naming->locations, depth, ret_stack);
}

static int name_syscall(struct naming *naming, int32_t number, uint32_t *ret_name)
{
    char unnamed[32] = "";
    const char *name = number < 0 ? "" : syscall_name(number);
    if (!name)
        snprintf(unnamed, sizeof unnamed, "syscall_%" PRId32, number);
    return strings_intern(&naming->profile->strings, name ? name : unnamed, ret_name);
}

static int name_call(struct naming *naming, const struct sample_labels *labels, uint32_t *ret_name)
{
    const char *reason = strings_get(naming->counted->strings, labels->wait_reason);
    return labels->task == TASK_GOROUTINE
               ? strings_intern(&naming->profile->strings, reason, ret_name)
               : name_syscall(naming, labels->syscall_number, ret_name);
}

/* Finds the profile's process, or adds it. */
static int process_of(struct naming *naming, uint32_t counted, uint32_t *ret_process)
{
    uint32_t *known = &naming->processes[counted];
    if (!*known) {
        const struct counted_process *process = &naming->counted->table->processes[counted];
        int err =
            profile_add_process(naming->profile, process->pid,
                                strings_get(naming->counted->strings, process->name), ret_process);
        if (err)
            return err;
        *known = *ret_process + 1;
    }
    *ret_process = *known - 1;
    return 0;
}

/* Finds the profile's label set, or adds it. */
static int label_set_of(struct naming *naming, uint32_t counted_plus_1, uint32_t *ret_set_plus_1)
{
    const struct label_sets *sets = naming->counted->label_sets;
    uint32_t number, *known = counted_plus_1 ? &naming->label_sets[counted_plus_1 - 1] : NULL;
    int err = known && !*known ? profile_add_label_set(naming->profile, &number) : 0;
    if (known && !*known && !err) {
        const struct label_set *set = &sets->sets[counted_plus_1 - 1];
        *known = number + 1;
        for (uint32_t i = 0; i < set->count && !err; i++) {
            const struct label *label = &sets->labels[set->first + i];
            err = profile_add_label(naming->profile, strings_get(&sets->strings, label->key),
                                    strings_get(&sets->strings, label->value));
        }
    }
    *ret_set_plus_1 = known ? *known : 0;
    return err;
}

static int add_sample(struct naming *naming, const struct counted_sample *counted,
                      uint32_t *ret_sample)
{
    const struct sample_labels *labels = &counted->labels;
    struct strings *strings = &naming->profile->strings;
    struct profile_sample sample = {
        .stack = naming->stacks[counted->stack],
        .tid = labels->tid,
        .goroutine = labels->goroutine,
        .state = labels->state,
        .count = counted->count,
        .time_ns = counted->time_ns,
        .wait_plus_1 = labels->wait_plus_1 ? naming->waits[labels->wait_plus_1 - 1] : 0,
        .elapsed_ns = naming->elapsed_ns[counted - naming->counted->table->samples],
        .sleeps = counted->sleeps,
        .is_goroutine = labels->task == TASK_GOROUTINE,
        .is_task = labels->task == TASK_PYTHON,
    };
    if (strings_intern(strings, strings_get(naming->counted->strings, labels->thread_name),
                       &sample.thread_name) ||
        strings_intern(strings, strings_get(naming->counted->strings, labels->wait_channel),
                       &sample.wait_channel) ||
        name_call(naming, labels, &sample.syscall_name) ||
        process_of(naming, labels->process, &sample.process) ||
        label_set_of(naming, labels->label_set_plus_1, &sample.label_set_plus_1))
        return -ENOMEM;
    if (labels->kernel_stack &&
        profile_add_kernel_frames(naming->profile,
                                  strings_get(naming->counted->strings, labels->kernel_stack),
                                  &sample.stack))
        return -ENOMEM;
    return profile_add_sample(naming->profile, &sample, ret_sample);
}

/* A sample with neither count nor time gave its share to others. A sample that is set aside may
 * belong to a span that is too short to show. */
static bool is_counted(const struct naming *naming, const struct counted_sample *sample)
{
    return !sample->labels.aside && sample->labels.task != TASK_NONE &&
           (sample->count || sample->time_ns ||
            naming->elapsed_ns[sample - naming->counted->table->samples]);
}

static struct named_rows named_by(const struct naming *naming)
{
    return (struct named_rows){
        .strings = naming->counted->strings,
        .spaces = naming->counted->spaces,
        .stacks = naming->stacks,
        .reader = naming->sources->reader,
        .processes_plus_1 = naming->processes,
    };
}

/* Which rows of the other tables the samples need: few, if a profile covers only the last seconds
 * of a long recording. */
struct needed {
    bool *waits, *stacks;
};

static void find_needed(const struct naming *naming, struct needed *needed)
{
    const struct counted *counted = naming->counted;
    for (size_t i = 0; i < counted->table->sample_count; i++) {
        const struct counted_sample *sample = &counted->table->samples[i];
        if (!is_counted(naming, sample))
            continue;
        needed->stacks[sample->stack] = true;
        if (sample->labels.wait_plus_1)
            needed->waits[sample->labels.wait_plus_1 - 1] = true;
    }
    /* A row refers only to earlier ones. */
    for (size_t i = counted->waits->count; i-- > 0;) {
        const struct counted_wait *wait = &counted->waits->rows[i];
        if (!needed->waits[i])
            continue;
        if (wait->owner_stack != WAIT_NO_STACK)
            needed->stacks[wait->owner_stack] = true;
        if (wait->waker_stack_plus_1)
            needed->stacks[wait->waker_stack_plus_1 - 1] = true;
        if (wait->owner_wait_plus_1)
            needed->waits[wait->owner_wait_plus_1 - 1] = true;
    }
}

/* Adds what the samples refer to: stacks, processes and waits. */
static int add_needed(struct naming *naming, const struct needed *needed)
{
    const struct counted *counted = naming->counted;
    const struct stack_table *table = counted->table;
    const struct named_rows named = named_by(naming);
    int err = 0;
    for (size_t i = 0; i < table->stack_count && !err; i++) {
        if (needed->stacks[i])
            err = add_stack(naming, &table->stacks[i], NULL, &naming->stacks[i]);
    }
    for (size_t i = 0; i < table->sample_count && !err; i++) {
        uint32_t process;
        if (is_counted(naming, &table->samples[i]))
            err = process_of(naming, table->samples[i].labels.process, &process);
    }
    return err ? err
               : name_waits(naming->profile, counted->waits, &named, needed->waits, &naming->waits);
}

static int add_samples(struct naming *naming)
{
    const struct stack_table *table = naming->counted->table;
    struct needed needed = {
        .waits = calloc(naming->counted->waits->count + 1, sizeof *needed.waits),
        .stacks = calloc(table->stack_count + 1, sizeof *needed.stacks),
    };
    int err = needed.waits && needed.stacks ? 0 : -ENOMEM;
    naming->profile->has_sleeps = true;
    if (!err) {
        find_needed(naming, &needed);
        err = add_needed(naming, &needed);
    }
    free(needed.waits);
    free(needed.stacks);
    for (size_t i = 0; i < table->sample_count && !err; i++) {
        if (is_counted(naming, &table->samples[i]))
            err = add_sample(naming, &table->samples[i], &naming->samples[i]);
        else
            naming->samples[i] = PROFILE_NO_SAMPLE;
    }
    /* Timelines still refer to samples whose figures were all moved to another one. */
    for (size_t i = 0; i < table->sample_count && !err; i++) {
        uint32_t joined_plus_1 = table->samples[i].joined_plus_1;
        if (naming->samples[i] == PROFILE_NO_SAMPLE && joined_plus_1)
            naming->samples[i] = naming->samples[joined_plus_1 - 1];
    }
    return err;
}

static int add_deadlocks(struct naming *naming)
{
    const struct counted *counted = naming->counted;
    const struct named_rows named = named_by(naming);
    return name_deadlocks(naming->profile, counted->deadlocks, counted->begin_ns, &named,
                          naming->waits);
}

static int add_idle(struct naming *naming, uint32_t process)
{
    struct fgprof_profile *profile = naming->profile;
    struct profile_sample sample = {.state = THREAD_SLEEPING,
                                    .elapsed_ns = naming->idle_ns[process]};
    uint32_t location;
    if (profile_add_note(profile, PROFILE_IDLE, &location) ||
        profile_add_stack(profile, &location, 1, &sample.stack) ||
        process_of(naming, process, &sample.process))
        return -ENOMEM;
    return profile_add_sample(profile, &sample, NULL);
}

static int add_parallelism(struct fgprof_profile *profile, const struct parallelism *parallelism)
{
    uint64_t all_ns = 0, running_ns = 0, rows[PARALLELISM_MAX + 1];
    size_t count = PARALLELISM_MAX + 1;
    for (size_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        all_ns += sample->elapsed_ns;
        running_ns += sample_is_on_cpu(sample) ? sample->elapsed_ns : 0;
    }
    parallelism_divide(parallelism, all_ns, running_ns, rows);
    while (count > 1 && !rows[count - 1])
        count--;
    if (array_reserve(&profile->parallel_ns, &profile->parallel_capacity, count))
        return -ENOMEM;
    memcpy(profile->parallel_ns, rows, count * sizeof *rows);
    profile->parallel_count = count;
    return 0;
}

/* Threads without a task are not shown, and their elapsed time belongs to nobody. */
static void leave_out(struct naming *naming)
{
    for (size_t i = 0; i < naming->counted->table->sample_count; i++) {
        const struct counted_sample *sample = &naming->counted->table->samples[i];
        if (sample->labels.task == TASK_NONE)
            naming->idle_ns[sample->labels.process] += naming->elapsed_ns[i];
    }
}

/* Adds the elapsed time that belongs to no sample. */
static int add_elapsed(struct naming *naming)
{
    int err = 0;
    if (!naming->counted->elapsed)
        return 0;
    naming->profile->has_elapsed = true;
    leave_out(naming);
    for (uint32_t i = 0; i < naming->counted->table->process_count && !err; i++) {
        if (naming->idle_ns[i])
            err = add_idle(naming, i);
    }
    return err ? err : add_parallelism(naming->profile, naming->counted->parallelism);
}

static int allocate(struct naming *naming)
{
    const struct counted *counted = naming->counted;
    naming->stacks = calloc(counted->table->stack_count + 1, sizeof *naming->stacks);
    naming->processes = calloc(counted->table->process_count + 1, sizeof *naming->processes);
    naming->mappings = calloc(counted->spaces->count + 1, sizeof *naming->mappings);
    naming->samples = calloc(counted->table->sample_count + 1, sizeof *naming->samples);
    naming->elapsed_ns = calloc(counted->table->sample_count + 1, sizeof *naming->elapsed_ns);
    size_t label_sets = counted->label_sets ? counted->label_sets->set_count : 0;
    naming->label_sets = calloc(label_sets + 1, sizeof *naming->label_sets);
    naming->idle_ns = calloc(counted->table->process_count + 1, sizeof *naming->idle_ns);
    bool is_whole = naming->processes && naming->stacks && naming->samples && naming->mappings &&
                    naming->elapsed_ns && naming->idle_ns && naming->label_sets;
    if (!is_whole || !counted->elapsed)
        return is_whole ? 0 : -ENOMEM;
    return elapsed_divide(counted->table, counted->elapsed, counted->until_ns, naming->elapsed_ns,
                          naming->idle_ns);
}

/* Frees everything but the profile. */
static void release(struct naming *naming)
{
    for (size_t i = 0; naming->mappings && i < naming->counted->spaces->count; i++)
        free(naming->mappings[i]);
    free(naming->mappings);
    free(naming->processes);
    free(naming->stacks);
    free(naming->makers);
    free(naming->samples);
    free(naming->waits);
    free(naming->label_sets);
    free(naming->elapsed_ns);
    free(naming->idle_ns);
    free(naming->locations);
    unnamed_free(&naming->unnamed);
}

static bool is_chosen(const struct naming *naming, const struct chosen_objects *chosen,
                      const struct object_maker *maker)
{
    const struct strings *strings = naming->counted->strings;
    return maker->kind == chosen->maker_kind &&
           (!chosen->name || strcmp(strings_get(strings, maker->name), chosen->name) == 0);
}

/* Finds the profile's stack of objects, or adds it. */
static int stack_of(struct naming *naming, const struct object_maker *maker, uint32_t *ret_stack)
{
    const struct counted_stack *counted = &naming->counted->table->stacks[maker->stack];
    const char *origin = origins[maker->origin];
    uint32_t *known = &naming->stacks[maker->stack];
    if (origin || !*known) {
        int err = add_stack(naming, counted, origin, ret_stack);
        if (err || origin)
            return err;
        *known = *ret_stack + 1;
    }
    *ret_stack = *known - 1;
    return 0;
}

static bool has_objects(const struct naming *naming, const struct chosen_objects *chosen,
                        const struct counted_maker *counted)
{
    bool is_wanted = !chosen->wanted || chosen->wanted[counted - chosen->objects->makers];
    return is_wanted && counted->made && is_chosen(naming, chosen, &counted->maker);
}

/* Adds the stacks of the makers that are chosen. */
static int add_makers(struct naming *naming, const struct chosen_objects *chosen)
{
    int err = 0;
    naming->makers = calloc(chosen->objects->maker_count + 1, sizeof *naming->makers);
    if (!naming->makers)
        return -ENOMEM;
    for (size_t i = 0; i < chosen->objects->maker_count && !err; i++) {
        const struct counted_maker *counted = &chosen->objects->makers[i];
        if (has_objects(naming, chosen, counted))
            err = stack_of(naming, &counted->maker, &naming->makers[i]);
    }
    return err;
}

/* Keeps the frames that show where a thread was created, or began. */
static int shorten(struct fgprof_profile *profile, const struct object_maker *maker,
                   uint32_t *stack)
{
    if (maker->origin == ORIGIN_BEFORE || maker->origin == ORIGIN_UNSEEN)
        return makers_keep_start(profile, stack);
    return maker->origin == ORIGIN_SEEN ? makers_drop_calls(profile, stack) : 0;
}

static int add_objects_of(struct naming *naming, const struct chosen_objects *chosen,
                          const struct counted_maker *counted, uint32_t stack)
{
    const struct object_maker *maker = &counted->maker;
    struct fgprof_summary *summary = &naming->profile->summary;
    struct profile_sample sample = {
        .stack = stack,
        .tid = maker->tid,
        .state = THREAD_UNKNOWN,
        .object_bytes = maker->bytes,
        .made = counted->made,
        .gone = counted->gone,
    };
    int err = chosen->are_threads ? shorten(naming->profile, maker, &sample.stack) : 0;
    if (naming->counted->table->stacks[maker->stack].cut != STACK_WHOLE)
        summary->samples_cut += counted->made;
    if (!err)
        err = process_of(naming, maker->process, &sample.process);
    if (!err && chosen->are_threads)
        err =
            strings_intern(&naming->profile->strings,
                           strings_get(naming->counted->strings, maker->name), &sample.thread_name);
    return err ? err : profile_add_sample(naming->profile, &sample, NULL);
}

static int add_objects(struct naming *naming, const struct chosen_objects *chosen)
{
    int err = 0;
    for (size_t i = 0; i < chosen->objects->maker_count && !err; i++) {
        const struct counted_maker *counted = &chosen->objects->makers[i];
        if (has_objects(naming, chosen, counted))
            err = add_objects_of(naming, chosen, counted, naming->makers[i]);
    }
    return err;
}

/* Finds the frames that only allocate. *ret_skips: see struct naming; NULL if there are none. */
static int find_allocators(const struct naming *naming, uint32_t **ret_skips)
{
    size_t stack_count = naming->counted->table->stack_count;
    uint32_t *skips = calloc(stack_count + 1, sizeof *skips);
    bool has_any = false;
    if (!skips)
        return -ENOMEM;
    for (size_t i = 0; i < stack_count; i++) {
        if (naming->stacks[i])
            skips[i] = allocators_count_leading(naming->profile, naming->stacks[i] - 1);
        has_any |= skips[i] != 0;
    }
    if (!has_any) {
        free(skips);
        skips = NULL;
    }
    *ret_skips = skips;
    return 0;
}

static void trim_allocators(struct naming *naming)
{
    for (size_t i = 0; i < naming->counted->table->stack_count; i++) {
        if (naming->stacks[i])
            allocators_trim_first(naming->profile, naming->stacks[i] - 1);
    }
}

/* Makes the profile and the tables needed to fill it. Call end() even after an error. */
static int begin(struct naming *naming)
{
    int err = profile_new(&naming->profile);
    if (!err)
        err = allocate(naming);
    return err ? err : add_main_mapping(naming);
}

/* Finishes the profile, or frees it if memory was short. */
static int end(struct naming *naming, bool failed, struct fgprof_profile **ret_profile)
{
    release(naming);
    if (failed) {
        profile_free(naming->profile);
        return -ENOMEM;
    }
    profile_finish(naming->profile);
    *ret_profile = naming->profile;
    return 0;
}

/* Finds allocating frames if `ret_skips` is not NULL; otherwise omits those in `skips`, if any. */
static int name_chosen(const struct counted *counted, const struct chosen_objects *chosen,
                       const struct name_sources *sources, const uint32_t *skips,
                       uint32_t **ret_skips, struct fgprof_profile **ret_profile)
{
    struct naming naming = {.counted = counted, .sources = sources, .skips = skips};
    bool failed = begin(&naming) || add_makers(&naming, chosen) ||
                  name_locations(naming.profile, &naming.unnamed, sources) ||
                  add_objects(&naming, chosen) ||
                  (ret_skips && find_allocators(&naming, ret_skips));
    if (!failed && chosen->are_allocations)
        trim_allocators(&naming);
    return end(&naming, failed, ret_profile);
}

int name_objects(const struct counted *counted, const struct chosen_objects *chosen,
                 const struct name_sources *sources, struct fgprof_profile **ret_profile)
{
    uint32_t *skips = NULL;
    struct fgprof_profile *profile;
    int err = name_chosen(counted, chosen, sources, NULL, chosen->are_allocations ? &skips : NULL,
                          &profile);
    if (!err && skips) {
        profile_free(profile);
        err = name_chosen(counted, chosen, sources, skips, NULL, &profile);
        free(skips);
    }
    if (!err)
        *ret_profile = profile;
    return err;
}

int name_profile(const struct counted *counted, const struct name_sources *sources,
                 struct fgprof_profile **ret_profile)
{
    struct naming naming = {.counted = counted, .sources = sources};
    const struct timeline *timeline = counted->timeline;
    bool failed = begin(&naming) || add_samples(&naming) || add_elapsed(&naming) ||
                  name_locations(naming.profile, &naming.unnamed, sources) ||
                  name_other_locks(naming.profile) || name_waker_paths(naming.profile) ||
                  add_deadlocks(&naming);
    if (!failed && timeline && timeline->is_wanted)
        failed = profile_set_timelines(naming.profile, timeline, naming.samples, counted->strings);
    return end(&naming, failed, ret_profile);
}
