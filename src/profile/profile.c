#include "profile/profile.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int profile_new(struct fgprof_profile **ret_profile)
{
    struct fgprof_profile *profile = calloc(1, sizeof *profile);
    if (!profile)
        return -ENOMEM;
    if (strings_init(&profile->strings)) {
        profile_free(profile);
        return -ENOMEM;
    }
    profile->threads = FGPROF_THREADS_BY_ID;
    *ret_profile = profile;
    return 0;
}

void profile_free(struct fgprof_profile *profile)
{
    if (!profile)
        return;
    strings_free(&profile->strings);
    free(profile->processes);
    free(profile->functions);
    index_free(&profile->function_index);
    free(profile->lines);
    free(profile->mappings);
    free(profile->locations);
    index_free(&profile->location_index);
    free(profile->stack_locations);
    free(profile->stacks);
    index_free(&profile->stack_index);
    free(profile->samples);
    free(profile->waits);
    index_free(&profile->wait_index);
    free(profile->labels);
    for (size_t i = 0; i < profile->root_label_count; i++)
        free(profile->root_labels[i]);
    free(profile->root_labels);
    free(profile->label_sets);
    free(profile->parallel_ns);
    free(profile->timelines);
    free(profile->runs);
    free(profile->tick_runs);
    free(profile->critical.of);
    free(profile->births);
    free(profile->unreadable);
    free(profile->deadlocks);
    free(profile->attributes);
    free(profile->command);
    free(profile->read_from);
    free(profile->recorded_by);
    free(profile->reason);
    free(profile->host);
    index_free(&profile->sample_index);
    free(profile);
}

const char *profile_recorded_by(const struct fgprof_profile *profile)
{
    const char *command = profile->recorded_by ? profile->recorded_by : profile->command;
    return command ? command : "";
}

int profile_add_unreadable(struct fgprof_profile *profile, const char *path, const char *why)
{
    uint32_t id;
    int err = strings_print(&profile->strings, &id, "%s (%s)", path, why);
    for (size_t i = 0; i < profile->unreadable_count && !err; i++) {
        if (profile->unreadable[i] == id)
            return 0;
    }
    if (err || array_append(&profile->unreadable, &profile->unreadable_count,
                            &profile->unreadable_capacity, id))
        return -ENOMEM;
    profile->summary.modules_unreadable++;
    return 0;
}

int fgprof_profile_set_attribute(fgprof_profile *profile, const char *key, const char *value)
{
    struct profile_attribute made;
    if (!*key)
        return -EINVAL;
    if (strings_intern(&profile->strings, key, &made.key) ||
        strings_intern(&profile->strings, value, &made.value))
        return -ENOMEM;
    for (size_t i = 0; i < profile->attribute_count; i++) {
        if (profile->attributes[i].key == made.key) {
            profile->attributes[i].value = made.value;
            return 0;
        }
    }
    return array_append(&profile->attributes, &profile->attribute_count,
                        &profile->attribute_capacity, made);
}

int profile_add_process(struct fgprof_profile *profile, uint32_t pid, const char *name,
                        uint32_t *ret_process)
{
    struct profile_process process = {.pid = pid};
    if (strings_intern(&profile->strings, name, &process.name) ||
        array_append(&profile->processes, &profile->process_count, &profile->process_capacity,
                     process))
        return -ENOMEM;
    *ret_process = (uint32_t)profile->process_count - 1;
    return 0;
}

struct stack_key {
    const uint32_t *locations;
    size_t depth;
};

static bool is_same_stack(const void *owner, uint32_t item, const void *key)
{
    const struct fgprof_profile *profile = owner;
    const struct profile_stack *known = &profile->stacks[item];
    const struct stack_key *sought = key;
    return known->depth == sought->depth &&
           (!known->depth ||
            memcmp(&profile->stack_locations[known->first_location], sought->locations,
                   known->depth * sizeof *sought->locations) == 0);
}

int profile_add_stack(struct fgprof_profile *profile, const uint32_t *locations, size_t depth,
                      uint32_t *ret_stack)
{
    struct stack_key key = {locations, depth};
    uint64_t hash = hash_bytes(locations, depth * sizeof *locations, 0);
    *ret_stack = index_find(&profile->stack_index, hash, is_same_stack, profile, &key);
    if (*ret_stack != INDEX_NONE)
        return 0;
    if (array_reserve(&profile->stack_locations, &profile->stack_location_capacity,
                      profile->stack_location_count + depth) ||
        array_reserve(&profile->stacks, &profile->stack_capacity, profile->stack_count + 1) ||
        index_add(&profile->stack_index, hash, (uint32_t)profile->stack_count))
        return -ENOMEM;
    for (size_t i = 0; i < depth; i++)
        profile->stack_locations[profile->stack_location_count + i] = locations[i];
    *ret_stack = (uint32_t)profile->stack_count;
    profile->stacks[profile->stack_count++] =
        (struct profile_stack){profile->stack_location_count, depth};
    profile->stack_location_count += depth;
    return 0;
}

int profile_add_sample(struct fgprof_profile *profile, const struct profile_sample *sample,
                       uint32_t *ret_sample)
{
    size_t before = profile->sample_count;
    uint32_t number;
    if (INDEX_INTERN(&profile->sample_index, offsetof(struct profile_sample, never_moved), sample,
                     &profile->samples, &profile->sample_count, &profile->sample_capacity, &number))
        return -ENOMEM;
    if (ret_sample)
        *ret_sample = number;
    if (number == before) /* it is new */
        return 0;
    struct profile_sample *known = &profile->samples[number];
    known->count += sample->count;
    known->time_ns += sample->time_ns;
    known->never_moved &= sample->never_moved;
    known->elapsed_ns += sample->elapsed_ns;
    known->sleeps += sample->sleeps;
    known->made += sample->made;
    known->gone += sample->gone;
    return 0;
}

void profile_replace_samples(struct fgprof_profile *profile, struct fgprof_profile *from)
{
    free(profile->samples);
    index_free(&profile->sample_index);
    profile->samples = from->samples;
    profile->sample_count = from->sample_count;
    profile->sample_capacity = from->sample_capacity;
    profile->sample_index = from->sample_index;
    from->samples = NULL;
    from->sample_count = from->sample_capacity = 0;
    from->sample_index = (struct index){0};
    profile->has_timelines = false;
    profile->timeline_count = profile->run_count = profile->tick_run_count = 0;
}

int profile_add_label_set(struct fgprof_profile *profile, uint32_t *ret_set)
{
    *ret_set = (uint32_t)profile->label_set_count;
    return array_append(&profile->label_sets, &profile->label_set_count,
                        &profile->label_set_capacity,
                        (struct profile_label_set){.first_label = (uint32_t)profile->label_count});
}

int profile_add_label(struct fgprof_profile *profile, const char *key, const char *value)
{
    struct profile_label label;
    if (strings_intern(&profile->strings, key, &label.key) ||
        strings_intern(&profile->strings, value, &label.value) ||
        array_append(&profile->labels, &profile->label_count, &profile->label_capacity, label))
        return -ENOMEM;
    profile->label_sets[profile->label_set_count - 1].label_count++;
    return 0;
}

/* The label of a new row is the row itself. */
static int intern_wait(struct fgprof_profile *profile, const struct profile_wait *wait,
                       uint32_t *ret_wait)
{
    struct profile_wait row = *wait;
    row.label = (uint32_t)profile->wait_count;
    return INDEX_INTERN(&profile->wait_index, offsetof(struct profile_wait, label), &row,
                        &profile->waits, &profile->wait_count, &profile->wait_capacity, ret_wait);
}

int profile_add_wait(struct fgprof_profile *profile, const struct profile_wait *wait,
                     uint32_t *ret_wait)
{
    struct profile_wait shown = *wait;
    uint32_t label;
    shown.owner_stack = PROFILE_NO_STACK;
    shown.owner_wait_plus_1 = 0;
    int err = intern_wait(profile, &shown, &label);
    if (!err)
        err = intern_wait(profile, wait, ret_wait);
    if (!err)
        profile->waits[*ret_wait].label = label;
    return err;
}

enum fgprof_state sample_state(const struct profile_sample *sample)
{
    static const enum fgprof_state states[THREAD_STATE_COUNT] = {
        [THREAD_UNKNOWN] = FGPROF_STATE_UNKNOWN,         [THREAD_RUNNING] = FGPROF_STATE_RUNNING,
        [THREAD_RUNNABLE] = FGPROF_STATE_RUNNABLE,       [THREAD_SLEEPING] = FGPROF_STATE_WAITING,
        [THREAD_UNINTERRUPTIBLE] = FGPROF_STATE_WAITING, [THREAD_STOPPED] = FGPROF_STATE_STOPPED,
    };
    return states[sample->state];
}
