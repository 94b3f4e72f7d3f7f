#include "profile/function_times.h"
#include "profile/place.h"
#include "proc/tids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_NAME UINT32_MAX

struct function_key {
    uint32_t name; /* in the profile's strings, or NO_NAME */
    uint32_t module;
};

/* Every frame belongs to a function. Functions are numbered once, so that summing compares numbers.
 */
struct functions {
    struct function_key *keys;
    size_t count, capacity;
    struct index index;
    uint32_t *of_frame; /* by frame_number() */
};

static int number_frame(const struct fgprof_profile *profile, const struct profile_frame *frame,
                        struct functions *functions)
{
    uint32_t mapping = frame->location->mapping;
    const struct function_key key = {
        frame->line ? profile->functions[frame->line->function].name : NO_NAME,
        mapping != PROFILE_NO_MAPPING ? profile->mappings[mapping].path : 0 /* "" */};
    return INDEX_INTERN(&functions->index, sizeof key, &key, &functions->keys, &functions->count,
                        &functions->capacity, &functions->of_frame[frame_number(profile, frame)]);
}

static void functions_free(struct functions *functions)
{
    free(functions->keys);
    index_free(&functions->index);
    free(functions->of_frame);
}

static int functions_number(const struct fgprof_profile *profile, struct functions *functions)
{
    *functions = (struct functions){
        .of_frame = calloc(frame_numbers(profile) + 1, sizeof *functions->of_frame)};
    int err = functions->of_frame ? 0 : -ENOMEM;
    for (size_t i = 0; i < profile->location_count; i++) {
        struct profile_frame frame = {.location = &profile->locations[i]};
        for (uint32_t j = 0; (!j || j < frame.location->line_count) && !err; j++) {
            if (frame.location->line_count)
                frame.line = &profile->lines[frame.location->first_line + j];
            err = number_frame(profile, &frame, functions);
        }
    }
    if (err)
        functions_free(functions);
    return err;
}

static uint32_t function_at(const struct fgprof_profile *profile, const struct functions *functions,
                            const struct profile_frame *frame)
{
    return functions->of_frame[frame_number(profile, frame)];
}

/* `counted`: for each function, the last sample that it was counted for, + 1. */
static void add_sample(const struct fgprof_profile *profile, const struct functions *functions,
                       struct places *places, size_t sample_number, size_t *counted,
                       struct fgprof_function *rows)
{
    const struct profile_sample *sample = &profile->samples[sample_number];
    const struct profile_stack *stack = &profile->stacks[sample->stack];
    struct frame_walk walk = {0};
    struct profile_frame frame;
    if (place_of_stack(places, stack, &frame) != PLACE_NONE)
        rows[function_at(profile, functions, &frame)].own_ns += sample->time_ns;
    for (bool is_leaf = true; frame_next_from_leaf(profile, stack, &walk, &frame);
         is_leaf = false) {
        uint32_t function = function_at(profile, functions, &frame);
        if (is_leaf)
            rows[function].self_ns += sample->time_ns;
        if (counted[function] == sample_number + 1)
            continue;
        counted[function] = sample_number + 1;
        rows[function].total_ns += sample->time_ns;
        rows[function].state_ns[sample_state(sample)] += sample->time_ns;
    }
}

static const char *name_of(const struct fgprof_profile *profile, const struct function_key *key)
{
    return key->name == NO_NAME ? NULL : strings_get(&profile->strings, key->name);
}

/* As callers know it. A goroutine's id of more than 31 bits becomes a positive number, which is
 * nearly always too large for a thread's. */
static pid_t tid_of(const struct profile_sample *sample)
{
    return (pid_t)signed_tid(sample->tid, sample->is_goroutine);
}

static bool is_wanted(const struct fgprof_profile *profile, const struct profile_sample *sample,
                      const pid_t *tids, size_t tid_count)
{
    return profile_keeps(profile, sample) && !sample_is_idle(sample) &&
           (!tids || tids_have(tids, tid_count, tid_of(sample)));
}

int profile_functions(const struct fgprof_profile *profile, const pid_t *tids, size_t tid_count,
                      struct fgprof_function **ret_rows, size_t *ret_count)
{
    struct functions functions;
    int err = functions_number(profile, &functions);
    if (err)
        return err;
    struct places places;
    err = places_init(&places, profile);
    size_t *counted = calloc(functions.count + 1, sizeof *counted);
    struct fgprof_function *rows = calloc(functions.count + 1, sizeof *rows);
    if (!err && counted && rows) {
        for (size_t i = 0; i < functions.count; i++) {
            rows[i].name = name_of(profile, &functions.keys[i]);
            rows[i].module = strings_get(&profile->strings, functions.keys[i].module);
        }
        for (size_t i = 0; i < profile->sample_count; i++) {
            if (is_wanted(profile, &profile->samples[i], tids, tid_count))
                add_sample(profile, &functions, &places, i, counted, rows);
        }
        *ret_rows = rows;
        *ret_count = functions.count;
    } else {
        free(rows);
        err = -ENOMEM;
    }
    free(counted);
    places_free(&places);
    functions_free(&functions);
    return err;
}

/* The key of an activity's row, compared as bytes. */
struct activity_key {
    pid_t tid;
    uint32_t thread_name, state, syscall_name, function, resource;
};

struct activities {
    struct activity_key *keys;
    struct fgprof_activity *rows;
    size_t count;
    struct index index;
    struct places places;
};

/* The caller has made room for one row per sample. */
static int add_activity(const struct fgprof_profile *profile, const struct functions *functions,
                        const struct profile_sample *sample, struct activities *activities)
{
    const struct profile_wait *wait = sample_wait(profile, sample);
    struct profile_frame place;
    struct activity_key key = {
        tid_of(sample), sample->thread_name,      sample_state(sample), sample->syscall_name,
        NO_NAME,        wait ? wait->resource : 0};
    struct function_key function = {NO_NAME, 0};
    if (place_of_stack(&activities->places, &profile->stacks[sample->stack], &place) !=
        PLACE_NONE) {
        key.function = function_at(profile, functions, &place);
        function = functions->keys[key.function];
    }
    size_t known = activities->count;
    uint32_t number;
    if (index_intern(&activities->index, sizeof key, &key, activities->keys, sizeof key,
                     &activities->count, &number))
        return -ENOMEM;
    if (number == known)
        activities->rows[number] = (struct fgprof_activity){
            .tid = key.tid,
            .thread_name = strings_get(&profile->strings, sample->thread_name),
            .state = sample_state(sample),
            .syscall = strings_get(&profile->strings, sample->syscall_name),
            .function = name_of(profile, &function),
            .module = strings_get(&profile->strings, function.module),
            .resource = strings_get(&profile->strings, key.resource),
        };
    activities->rows[number].time_ns += sample->time_ns;
    return 0;
}

int profile_activities(const struct fgprof_profile *profile, struct fgprof_activity **ret_rows,
                       size_t *ret_count)
{
    struct functions functions;
    struct activities activities = {
        .keys = calloc(profile->sample_count + 1, sizeof *activities.keys),
        .rows = calloc(profile->sample_count + 1, sizeof *activities.rows),
    };
    int err = places_init(&activities.places, profile);
    if (!activities.keys || !activities.rows)
        err = -ENOMEM;
    bool has_functions = false;
    if (!err)
        err = functions_number(profile, &functions);
    has_functions = !err;
    for (size_t i = 0; i < profile->sample_count && !err; i++) {
        if (profile_keeps(profile, &profile->samples[i]) && !sample_is_idle(&profile->samples[i]))
            err = add_activity(profile, &functions, &profile->samples[i], &activities);
    }
    if (has_functions)
        functions_free(&functions);
    places_free(&activities.places);
    free(activities.keys);
    index_free(&activities.index);
    if (err) {
        free(activities.rows);
        return err;
    }
    *ret_rows = activities.rows;
    *ret_count = activities.count;
    return 0;
}

struct wait_key {
    pid_t tid;
    uint32_t process, thread_name, resource, owner; /* the owner's name, or NO_NAME */
    uint32_t waker;
};

struct wait_times {
    struct wait_key *keys;
    struct fgprof_wait *rows;
    size_t count;
    struct index index;
};

/* The caller has made room for one row per sample. */
static int add_wait(const struct fgprof_profile *profile, const struct profile_sample *sample,
                    struct wait_times *times)
{
    const struct profile_wait *wait = sample_wait(profile, sample);
    bool has_owner = wait->owner_process != PROFILE_NO_OWNER;
    const struct wait_key key = {tid_of(sample),
                                 sample->process,
                                 sample->thread_name,
                                 wait->resource,
                                 has_owner ? wait->owner_name : NO_NAME,
                                 wait->waker};
    size_t known = times->count;
    uint32_t number;
    if (index_intern(&times->index, sizeof key, &key, times->keys, sizeof key, &times->count,
                     &number))
        return -ENOMEM;
    if (number == known) {
        times->rows[number] = (struct fgprof_wait){
            .tid = key.tid,
            .thread_name = strings_get(&profile->strings, sample->thread_name),
            .resource = strings_get(&profile->strings, wait->resource),
            .owner = has_owner ? strings_get(&profile->strings, wait->owner_name) : NULL,
            .waker = wait->waker ? strings_get(&profile->strings, wait->waker) : NULL,
        };
        if (sample->process < profile->process_count)
            times->rows[number].pid = (pid_t)profile->processes[sample->process].pid;
    }
    times->rows[number].time_ns += sample->time_ns;
    return 0;
}

int profile_waits(const struct fgprof_profile *profile, struct fgprof_wait **ret_rows,
                  size_t *ret_count)
{
    struct wait_times times = {
        .keys = calloc(profile->sample_count + 1, sizeof *times.keys),
        .rows = calloc(profile->sample_count + 1, sizeof *times.rows),
    };
    int err = times.keys && times.rows ? 0 : -ENOMEM;
    for (size_t i = 0; i < profile->sample_count && !err; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        if (sample_wait(profile, sample) && profile_keeps(profile, sample))
            err = add_wait(profile, sample, &times);
    }
    free(times.keys);
    index_free(&times.index);
    if (err) {
        free(times.rows);
        return err;
    }
    *ret_rows = times.rows;
    *ret_count = times.count;
    return 0;
}
