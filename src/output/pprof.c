/* profile.proto, gzipped (github.com/google/pprof/proto/profile.proto), with the value types of
 * Go's fgprof (github.com/felixge/fgprof), samples/count and time/nanoseconds; the same time in two
 * parts, on_cpu/nanoseconds and off_cpu/nanoseconds; and, if it is known, elapsed/nanoseconds.
 * Other kinds have the types of Go's runtime/pprof. If times were chosen, each is a separate type:
 * wall/nanoseconds, cpu/nanoseconds, off_cpu/nanoseconds, the names that servers for continuous
 * profiling use. Profiles of objects have the types of profile/objects.h. */
#include "output/output.h"
#include "output/state.h"
#include "base/name.h"
#include "base/protobuf.h"
#include "profile/kind.h"
#include "profile/objects.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Field numbers, by message. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING_TABLE = 6,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14,

    VALUE_TYPE_TYPE = 1,
    VALUE_TYPE_UNIT = 2,

    SAMPLE_LOCATION_ID = 1,
    SAMPLE_VALUE = 2,
    SAMPLE_LABEL = 3,

    LABEL_KEY = 1,
    LABEL_STR = 2,
    LABEL_NUM = 3,
    LABEL_NUM_UNIT = 4,

    MAPPING_ID = 1,
    MAPPING_MEMORY_START = 2,
    MAPPING_MEMORY_LIMIT = 3,
    MAPPING_FILE_OFFSET = 4,
    MAPPING_FILENAME = 5,
    MAPPING_BUILD_ID = 6,
    MAPPING_HAS_FUNCTIONS = 7,
    MAPPING_HAS_FILENAMES = 8,
    MAPPING_HAS_LINE_NUMBERS = 9,
    MAPPING_HAS_INLINE_FRAMES = 10,

    LOCATION_ID = 1,
    LOCATION_MAPPING_ID = 2,
    LOCATION_ADDRESS = 3,
    LOCATION_LINE = 4,

    LINE_FUNCTION_ID = 1,
    LINE_LINE = 2,

    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_SYSTEM_NAME = 3,
    FUNCTION_FILENAME = 4,
};

/* The format's words: they follow the profile's own strings in the string table. */
enum word {
    WORD_SAMPLES,
    WORD_COUNT,
    WORD_TIME,
    WORD_ON_CPU,
    WORD_OFF_CPU,
    WORD_ELAPSED,
    WORD_NANOSECONDS,
    WORD_WALLCLOCK,
    WORD_THREAD,
    WORD_TID,
    WORD_STATE,
    WORD_SYSCALL,
    WORD_WAIT_CHANNEL,
    WORD_PROCESS,
    WORD_PID,
    WORD_WAIT,
    WORD_RESOURCE,
    WORD_OWNER,
    WORD_WAKER,
    WORD_WAKER_STACK,
    WORD_CONTENTIONS,
    WORD_DELAY,
    WORD_CPU,
    WORD_WALL,
    WORD_WAIT_REASON,
    WORD_GOROUTINE,
    WORD_STATES, /* the states' names from here on */
    /* Only in profiles of objects: */
    WORD_BYTES = WORD_STATES + THREAD_STATE_COUNT,
    WORD_SPACE,
    WORD_OBJECT_TYPES, /* the names of its types from here on */
};
static const char *const words[WORD_STATES] = {
    "samples",   "count",  "time",     "on_cpu",      "off_cpu",   "elapsed",      "nanoseconds",
    "wallclock", "thread", "tid",      "state",       "syscall",   "wait_channel", "process",
    "pid",       "wait",   "resource", "owner",       "waker",     "waker_stack",  "contentions",
    "delay",     "cpu",    "wall",     "wait_reason", "goroutine",
};

static uint64_t word(const struct fgprof_profile *profile, unsigned number)
{
    return profile->strings.count + number;
}

static void put_value_type(struct buffer *out, const struct fgprof_profile *profile, unsigned field,
                           unsigned type, unsigned unit)
{
    size_t begin = protobuf_begin(out, field);
    protobuf_number(out, VALUE_TYPE_TYPE, word(profile, type));
    protobuf_number(out, VALUE_TYPE_UNIT, word(profile, unit));
    protobuf_end(out, begin);
}

struct value {
    unsigned type, unit; /* words */
    uint64_t amount;
};
#define VALUES_MAX 5

/* Chosen times apply to a profile of wall-clock time alone. */
static unsigned times_of(const struct fgprof_profile *profile)
{
    return profile->kind == FGPROF_KIND_WALL && !profile->is_of_threads ? profile->times : 0;
}

static size_t chosen_times_of(const struct profile_sample *sample, unsigned times,
                              struct value values[VALUES_MAX])
{
    uint64_t on_cpu_ns = sample_is_on_cpu(sample) ? sample->time_ns : 0;
    size_t count = 0;
    if (times & FGPROF_TIME_WALL)
        values[count++] = (struct value){WORD_WALL, WORD_NANOSECONDS, sample->time_ns};
    if (times & FGPROF_TIME_CPU)
        values[count++] = (struct value){WORD_CPU, WORD_NANOSECONDS, on_cpu_ns};
    if (times & FGPROF_TIME_OFF_CPU)
        values[count++] =
            (struct value){WORD_OFF_CPU, WORD_NANOSECONDS, sample->time_ns - on_cpu_ns};
    return count;
}

static size_t objects_of(const struct fgprof_profile *profile, const struct profile_sample *sample,
                         struct value values[VALUES_MAX])
{
    struct object_type types[OBJECT_TYPES_MAX];
    size_t count = objects_types(profile, types);
    for (unsigned i = 0; i < count; i++)
        values[i] = (struct value){WORD_OBJECT_TYPES + i,
                                   strcmp(types[i].unit, "bytes") == 0 ? WORD_BYTES : WORD_COUNT,
                                   (uint64_t)objects_value(profile, sample, types[i].measure)};
    return count;
}

/* The types of Go's profiles of the same kind, and the sample's values. Returns how many. */
static size_t values_of(const struct fgprof_profile *profile, const struct profile_sample *sample,
                        struct value values[VALUES_MAX])
{
    bool is_on_cpu = sample_is_on_cpu(sample);
    size_t count = 0;
    if (profile_is_of_objects(profile))
        return objects_of(profile, sample, values);
    if (times_of(profile))
        return chosen_times_of(sample, times_of(profile), values);
    if (profile->is_of_threads) {
        values[count++] = (struct value){WORD_THREAD, WORD_COUNT, sample->count};
    } else if (profile_is_of_contentions(profile)) {
        values[count++] =
            (struct value){WORD_CONTENTIONS, WORD_COUNT, sample_contentions(profile, sample)};
        values[count++] = (struct value){WORD_DELAY, WORD_NANOSECONDS, sample->time_ns};
    } else if (profile->kind == FGPROF_KIND_CPU) {
        values[count++] = (struct value){WORD_SAMPLES, WORD_COUNT, sample->count};
        values[count++] = (struct value){WORD_CPU, WORD_NANOSECONDS, sample->time_ns};
    } else {
        values[count++] = (struct value){WORD_SAMPLES, WORD_COUNT, sample->count};
        values[count++] = (struct value){WORD_TIME, WORD_NANOSECONDS, sample->time_ns};
        values[count++] =
            (struct value){WORD_ON_CPU, WORD_NANOSECONDS, is_on_cpu ? sample->time_ns : 0};
        values[count++] =
            (struct value){WORD_OFF_CPU, WORD_NANOSECONDS, is_on_cpu ? 0 : sample->time_ns};
    }
    if (profile->has_elapsed)
        values[count++] = (struct value){WORD_ELAPSED, WORD_NANOSECONDS, sample->elapsed_ns};
    return count;
}

/* Puts a label. Its key and its unit are strings; 0: it has no unit. */
static void put_label_of(struct buffer *out, uint64_t key, unsigned field, uint64_t value,
                         uint64_t unit)
{
    size_t begin = protobuf_begin(out, SAMPLE_LABEL);
    protobuf_number(out, LABEL_KEY, key);
    protobuf_number(out, field, value);
    protobuf_number(out, LABEL_NUM_UNIT, unit);
    protobuf_end(out, begin);
}

static void put_label(struct buffer *out, const struct fgprof_profile *profile, enum word key,
                      unsigned field, uint64_t value)
{
    if (value)
        put_label_of(out, word(profile, key), field, value, 0);
}

/* The string after the words. */
static uint64_t next_string(const struct fgprof_profile *profile)
{
    struct object_type types[OBJECT_TYPES_MAX];
    return profile_is_of_objects(profile)
               ? word(profile, WORD_OBJECT_TYPES) + objects_types(profile, types)
               : word(profile, WORD_BYTES);
}

/* Servers ignore numeric labels (grafana/pyroscope, pkg/model/pprofsplit), so these get strings of
 * their own next: the labels' names, and each process's id. */
enum { SERVER_PROCESS, SERVER_PID, SERVER_PIDS };
static const char *const server_words[SERVER_PIDS] = {"process_executable_name", "process_pid"};

static uint64_t server_string(const struct fgprof_profile *profile, size_t number)
{
    return next_string(profile) + number;
}

/* The first of the comments, which are the last strings. */
static uint64_t comment_string(const struct fgprof_profile *profile)
{
    return next_string(profile) + (profile->times ? SERVER_PIDS + profile->process_count : 0);
}

static void put_process(struct buffer *out, const struct fgprof_profile *profile, uint32_t number)
{
    const struct profile_process *process = &profile->processes[number];
    if (!profile->times) {
        put_label(out, profile, WORD_PROCESS, LABEL_STR, process->name);
        put_label(out, profile, WORD_PID, LABEL_NUM, process->pid);
        return;
    }
    put_label_of(out, server_string(profile, SERVER_PROCESS), LABEL_STR, process->name, 0);
    put_label_of(out, server_string(profile, SERVER_PID), LABEL_STR,
                 server_string(profile, SERVER_PIDS + number), 0);
}

static void put_sample(struct buffer *out, const struct fgprof_profile *profile,
                       const struct profile_sample *sample)
{
    const struct profile_stack *stack = &profile->stacks[sample->stack];
    size_t begin = protobuf_begin(out, PROFILE_SAMPLE);

    size_t packed = protobuf_begin(out, SAMPLE_LOCATION_ID);
    for (size_t i = 0; i < stack->depth; i++)
        protobuf_varint(out, profile->stack_locations[stack->first_location + i] + 1u);
    protobuf_end(out, packed);

    struct value values[VALUES_MAX];
    size_t count = values_of(profile, sample, values);
    packed = protobuf_begin(out, SAMPLE_VALUE);
    for (size_t i = 0; i < count; i++)
        protobuf_varint(out, values[i].amount);
    protobuf_end(out, packed);

    if (profile_shows_processes(profile))
        put_process(out, profile, sample->process);
    put_label(out, profile, WORD_THREAD, LABEL_STR, sample->thread_name);
    put_label(out, profile, sample->is_goroutine ? WORD_GOROUTINE : WORD_TID, LABEL_NUM,
              sample->tid);
    put_label(out, profile, WORD_GOROUTINE, LABEL_NUM, sample->goroutine);
    /* As in Go's heap profile: pprof distinguishes objects by size. */
    if (profile_is_of_objects(profile) && !profile->times && sample->object_bytes)
        put_label_of(out, word(profile, WORD_BYTES), LABEL_NUM, sample->object_bytes,
                     word(profile, WORD_BYTES));
    if (!profile_is_of_objects(profile) && !sample_is_idle(sample) && !profile->times)
        put_label(out, profile, WORD_STATE, LABEL_STR, word(profile, WORD_STATES) + sample->state);
    put_label(out, profile, sample->is_goroutine ? WORD_WAIT_REASON : WORD_SYSCALL, LABEL_STR,
              sample->syscall_name);
    put_label(out, profile, WORD_WAIT_CHANNEL, LABEL_STR, sample->wait_channel);
    const struct profile_label *label;
    for (uint32_t i = 0; (label = sample_label(profile, sample, i)); i++)
        put_label_of(out, label->key, LABEL_STR, label->value, 0);
    const struct profile_wait *wait = sample_wait(profile, sample);
    if (wait) {
        put_label(out, profile, WORD_WAIT, LABEL_STR, wait->kind);
        put_label(out, profile, WORD_RESOURCE, LABEL_STR, wait->resource);
        put_label(out, profile, WORD_OWNER, LABEL_STR, wait->owner_name);
    }
    wait = sample_waker(profile, sample);
    if (wait) {
        put_label(out, profile, WORD_WAKER, LABEL_STR, wait->waker);
        put_label(out, profile, WORD_WAKER_STACK, LABEL_STR, wait->waker_path);
    }
    protobuf_end(out, begin);
}

static void put_mapping(struct buffer *out, const struct profile_mapping *mapping, size_t number)
{
    size_t begin = protobuf_begin(out, PROFILE_MAPPING);
    protobuf_number(out, MAPPING_ID, number + 1);
    protobuf_number(out, MAPPING_MEMORY_START, mapping->start);
    protobuf_number(out, MAPPING_MEMORY_LIMIT, mapping->limit);
    protobuf_number(out, MAPPING_FILE_OFFSET, mapping->offset);
    protobuf_number(out, MAPPING_FILENAME, mapping->path);
    protobuf_number(out, MAPPING_BUILD_ID, mapping->build_id);
    protobuf_number(out, MAPPING_HAS_FUNCTIONS, mapping->has_functions);
    protobuf_number(out, MAPPING_HAS_FILENAMES, mapping->has_files);
    protobuf_number(out, MAPPING_HAS_LINE_NUMBERS, mapping->has_lines);
    protobuf_number(out, MAPPING_HAS_INLINE_FRAMES, mapping->has_inlined);
    protobuf_end(out, begin);
}

static void put_location(struct buffer *out, const struct fgprof_profile *profile, size_t number)
{
    const struct profile_location *location = &profile->locations[number];
    size_t begin = protobuf_begin(out, PROFILE_LOCATION);
    protobuf_number(out, LOCATION_ID, number + 1);
    if (location->mapping != PROFILE_NO_MAPPING)
        protobuf_number(out, LOCATION_MAPPING_ID, location->mapping + 1u);
    protobuf_number(out, LOCATION_ADDRESS, location->address);
    for (uint32_t i = 0; i < location->line_count; i++) {
        const struct profile_line *line = &profile->lines[location->first_line + i];
        size_t nested = protobuf_begin(out, LOCATION_LINE);
        protobuf_number(out, LINE_FUNCTION_ID, line->function + 1u);
        protobuf_number(out, LINE_LINE, line->line);
        protobuf_end(out, nested);
    }
    protobuf_end(out, begin);
}

static void put_function(struct buffer *out, const struct profile_function *function, size_t number)
{
    size_t begin = protobuf_begin(out, PROFILE_FUNCTION);
    protobuf_number(out, FUNCTION_ID, number + 1);
    protobuf_number(out, FUNCTION_NAME, function->name);
    protobuf_number(out, FUNCTION_SYSTEM_NAME, function->system_name);
    protobuf_number(out, FUNCTION_FILENAME, function->file);
    protobuf_end(out, begin);
}

static void put_clean(struct buffer *out, const char *text, struct buffer *clean)
{
    clean->length = 0;
    name_append(clean, text);
    protobuf_bytes(out, PROFILE_STRING_TABLE, clean->bytes, clean->length);
}

static void put_server_strings(struct buffer *out, const struct fgprof_profile *profile)
{
    char pid[16];
    for (size_t i = 0; i < SERVER_PIDS; i++)
        protobuf_string(out, PROFILE_STRING_TABLE, server_words[i]);
    for (size_t i = 0; i < profile->process_count; i++) {
        snprintf(pid, sizeof pid, "%" PRIu32, profile->processes[i].pid);
        protobuf_string(out, PROFILE_STRING_TABLE, pid);
    }
}

static void put_object_words(struct buffer *out, const struct fgprof_profile *profile,
                             struct buffer *clean)
{
    struct object_type types[OBJECT_TYPES_MAX];
    size_t count = objects_types(profile, types);
    protobuf_string(out, PROFILE_STRING_TABLE, "bytes");
    protobuf_string(out, PROFILE_STRING_TABLE, "space");
    for (size_t i = 0; i < count; i++)
        put_clean(out, types[i].name, clean);
}

#define COMMENTS_MAX 4

/* Returns how many there are. */
static size_t make_comments(const struct fgprof_profile *profile,
                            struct buffer ret_comments[COMMENTS_MAX])
{
    const char *command = profile_recorded_by(profile);
    const char *contentions = profile_contentions_note(profile);
    char objects[OBJECTS_NOTE_BYTES];
    size_t count = 0;
    if (*command)
        name_append(&ret_comments[count++], command);
    if (contentions)
        buffer_puts(&ret_comments[count++], contentions);
    if (objects_note(profile, objects))
        buffer_puts(&ret_comments[count++], objects);
    if (profile->reason) {
        buffer_puts(&ret_comments[count], "reason: ");
        name_append(&ret_comments[count++], profile->reason);
    }
    return count;
}

/* Returns how many of them are comments. */
static size_t put_strings(struct buffer *out, const struct fgprof_profile *profile)
{
    struct buffer clean = {0}, comments[COMMENTS_MAX] = {0};
    size_t comment_count = make_comments(profile, comments);
    for (size_t i = 0; i < profile->strings.count; i++)
        put_clean(out, profile->strings.items[i], &clean);
    for (size_t i = 0; i < WORD_STATES; i++)
        protobuf_string(out, PROFILE_STRING_TABLE, words[i]);
    for (uint32_t i = 0; i < THREAD_STATE_COUNT; i++)
        protobuf_string(out, PROFILE_STRING_TABLE, state_name(i));
    if (profile_is_of_objects(profile))
        put_object_words(out, profile, &clean);
    if (profile->times)
        put_server_strings(out, profile);
    if (clean.error)
        out->error = clean.error;
    for (size_t i = 0; i < comment_count; i++) {
        protobuf_bytes(out, PROFILE_STRING_TABLE, comments[i].bytes, comments[i].length);
        if (comments[i].error)
            out->error = comments[i].error;
        buffer_free(&comments[i]);
    }
    buffer_free(&clean);
    return comment_count;
}

/* Empties the buffer, so that at most one message is in memory. */
static void drain(struct buffer *out, struct sink *sink)
{
    if (out->error && !sink->error)
        sink->error = out->error;
    sink_write(sink, out->bytes, out->length);
    out->length = 0;
}

static void put_sample_types(struct buffer *out, const struct fgprof_profile *profile)
{
    const struct profile_sample none = {0};
    struct value values[VALUES_MAX];
    size_t count = values_of(profile, &none, values);
    for (size_t i = 0; i < count; i++)
        put_value_type(out, profile, PROFILE_SAMPLE_TYPE, values[i].type, values[i].unit);
}

/* The first type, which the period has, too. */
static unsigned first_type(const struct fgprof_profile *profile)
{
    const struct profile_sample none = {0};
    struct value values[VALUES_MAX];
    values_of(profile, &none, values);
    return values[0].type;
}

/* Counts have a period of 1. */
static void put_period(struct buffer *out, const struct fgprof_profile *profile)
{
    bool is_counted = profile->is_of_threads || profile_is_of_contentions(profile) ||
                      profile_is_of_objects(profile);
    unsigned type = is_counted || times_of(profile)    ? first_type(profile)
                    : profile->kind == FGPROF_KIND_CPU ? WORD_CPU
                                                       : WORD_WALLCLOCK;
    unsigned unit = is_counted ? WORD_COUNT : WORD_NANOSECONDS;
    uint64_t period = is_counted ? 1 : profile->period_ns;
    if (objects_are_of_heap(profile)) {
        type = WORD_SPACE;
        unit = WORD_BYTES;
        period = profile->objects.rate ? profile->objects.rate : 1;
    }
    put_value_type(out, profile, PROFILE_PERIOD_TYPE, type, unit);
    protobuf_number(out, PROFILE_PERIOD, period);
}

static unsigned default_type(const struct fgprof_profile *profile)
{
    return profile_is_of_objects(profile)       ? WORD_OBJECT_TYPES + objects_main_type(profile)
           : profile->is_of_threads             ? WORD_THREAD
           : profile_is_of_contentions(profile) ? WORD_DELAY
           : times_of(profile)                  ? first_type(profile)
           : profile->kind == FGPROF_KIND_CPU   ? WORD_CPU
                                                : WORD_TIME;
}

static void put_comments(struct buffer *out, const struct fgprof_profile *profile, size_t count)
{
    for (size_t i = 0; i < count; i++)
        protobuf_number(out, PROFILE_COMMENT, comment_string(profile) + i);
    for (size_t i = 0; i < profile->deadlock_count; i++)
        protobuf_number(out, PROFILE_COMMENT, profile->deadlocks[i]);
}

static void put_samples(struct buffer *out, const struct fgprof_profile *profile,
                        const struct profile_view *view, struct sink *sink)
{
    for (size_t i = 0; i < view->sample_count; i++) {
        put_sample(out, profile, &view->samples[i]);
        drain(out, sink);
    }
}

/* For servers, which make a series of each label. */
static void put_samples_without_labels(struct buffer *out, const struct fgprof_profile *profile,
                                       struct sink *sink)
{
    struct profile_view view;
    unsigned times = times_of(profile) ? times_of(profile) : FGPROF_TIME_WALL;
    if (profile_view_make_times(profile, times, false, &view)) {
        out->error = -ENOMEM;
        return;
    }
    put_samples(out, profile, &view, sink);
    profile_view_free(&view);
}

void output_pprof(const struct fgprof_profile *profile, const struct profile_view *view,
                  struct sink *sink)
{
    struct buffer out = {0};
    put_sample_types(&out, profile);
    if (profile->times)
        put_samples_without_labels(&out, profile, sink);
    else
        put_samples(&out, profile, view, sink);
    for (size_t i = 0; i < profile->mapping_count; i++)
        put_mapping(&out, &profile->mappings[i], i);
    for (size_t i = 0; i < profile->location_count; i++) {
        put_location(&out, profile, i);
        drain(&out, sink);
    }
    for (size_t i = 0; i < profile->function_count; i++)
        put_function(&out, &profile->functions[i], i);
    drain(&out, sink);
    size_t comments = put_strings(&out, profile);
    protobuf_number(&out, PROFILE_TIME_NANOS, profile->start_time_ns);
    protobuf_number(&out, PROFILE_DURATION_NANOS, profile->summary.elapsed_ns);
    put_period(&out, profile);
    put_comments(&out, profile, comments);
    protobuf_number(&out, PROFILE_DEFAULT_SAMPLE_TYPE, word(profile, default_type(profile)));
    drain(&out, sink);
    buffer_free(&out);
}
