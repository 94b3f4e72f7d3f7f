/* OpenTelemetry's profiles, gzipped: an ExportProfilesServiceRequest
 * (github.com/open-telemetry/opentelemetry-proto 1.11, profiles/v1development/profiles.proto and
 * collector/profiles/v1development/profiles_service.proto; the numbers below hold since 1.10).
 *
 * Messages refer to rows of a dictionary's tables by number. Row 0 of each table is the type's zero
 * value, and stands for "none". Only rows that are used are written: each is given its number when
 * it is used first. So the profiles come first, and the dictionary at the end. */
#include "output/output.h"
#include "base/name.h"
#include "base/protobuf.h"
#include "profile/objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Field numbers, by message. */
enum {
    REQUEST_RESOURCE_PROFILES = 1,
    REQUEST_DICTIONARY = 2,

    DICTIONARY_MAPPING = 1,
    DICTIONARY_LOCATION = 2,
    DICTIONARY_FUNCTION = 3,
    DICTIONARY_LINK = 4,
    DICTIONARY_STRING = 5,
    DICTIONARY_ATTRIBUTE = 6,
    DICTIONARY_STACK = 7,

    RESOURCE_PROFILES_RESOURCE = 1,
    RESOURCE_PROFILES_SCOPE_PROFILES = 2,
    RESOURCE_ATTRIBUTE = 1,
    SCOPE_PROFILES_SCOPE = 1,
    SCOPE_PROFILES_PROFILE = 2,
    SCOPE_NAME = 1,
    SCOPE_VERSION = 2,

    KEY_VALUE_KEY = 1,
    KEY_VALUE_VALUE = 2,
    ANY_STRING = 1,
    ANY_INT = 3,

    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_TIME_UNIX_NANO = 3,
    PROFILE_DURATION_NANO = 4,
    PROFILE_PERIOD_TYPE = 5,
    PROFILE_PERIOD = 6,
    PROFILE_ID = 7,

    VALUE_TYPE_TYPE = 1,
    VALUE_TYPE_UNIT = 2,

    SAMPLE_STACK = 1,
    SAMPLE_ATTRIBUTES = 2,
    SAMPLE_VALUES = 4,

    MAPPING_START = 1,
    MAPPING_LIMIT = 2,
    MAPPING_OFFSET = 3,
    MAPPING_FILENAME = 4,
    MAPPING_ATTRIBUTES = 5,

    STACK_LOCATIONS = 1,

    LOCATION_MAPPING = 1,
    LOCATION_ADDRESS = 2,
    LOCATION_LINE = 3,

    LINE_FUNCTION = 1,
    LINE_LINE = 2,

    FUNCTION_NAME = 1,
    FUNCTION_SYSTEM_NAME = 2,
    FUNCTION_FILENAME = 3,

    ATTRIBUTE_KEY = 1,
    ATTRIBUTE_VALUE = 2,
};

/* Keys of attributes, with the names of OpenTelemetry's semantic conventions. These have none for a
 * goroutine: that of pprof's label. */
static const char thread_name[] = "thread.name", thread_id[] = "thread.id",
                  goroutine[] = "goroutine", build_id[] = "process.executable.build_id.gnu";

/* The format's own strings, which follow the profile's. Profile ids are made of their numbers. */
static const char *const words[] = {
    "wall",        "cpu",    "off_cpu",     "contentions",   "delay",       "block",
    "mutex",       "blame",  "nanoseconds", "count",         thread_name,   thread_id,
    build_id,      "bytes",  "space",       "alloc_objects", "alloc_space", "inuse_objects",
    "inuse_space", "faults", "rss",         "threadcreate",  "custom",      goroutine,
};
/* Stands for the name of the program's own objects, if they have one. */
#define WORD_CUSTOM 22

/* A type of value and its sampling period. */
struct type {
    unsigned times; /* the samples that have part in it */
    const char *type, *unit, *period_type, *period_unit;
};
#define TYPES_MAX OBJECT_TYPES_MAX

/* The used rows of a table of the profile, in the order of their new numbers, from 1 on. */
struct used {
    uint32_t *numbers; /* by row; 0: it is not used */
    uint32_t *rows;
    size_t count;
};

struct attribute {
    const char *key; /* one of those above */
    uint64_t value;  /* a row of the strings, or of thread_id and goroutine the number */
};

struct otlp {
    const struct fgprof_profile *profile;
    struct type types[TYPES_MAX];
    struct profile_view views[TYPES_MAX]; /* by type: the samples, by process */
    size_t *ends[TYPES_MAX];              /* by type and process: where its samples end */
    size_t type_count;
    struct buffer out;
    struct buffer clean;
    struct used mappings, locations, functions, stacks, strings;
    struct attribute *attributes; /* number 1 and so on */
    size_t attribute_count, attribute_capacity;
    struct index attribute_index;
};

static bool used_init(struct used *used, size_t rows)
{
    used->numbers = calloc(rows + 1, sizeof *used->numbers);
    used->rows = calloc(rows + 1, sizeof *used->rows);
    return used->numbers && used->rows;
}

static void used_free(struct used *used)
{
    free(used->numbers);
    free(used->rows);
}

static uint32_t number_of(struct used *used, uint32_t row)
{
    if (!used->numbers[row]) {
        used->rows[used->count++] = row;
        used->numbers[row] = (uint32_t)used->count;
    }
    return used->numbers[row];
}

/* Row 0 of both tables of strings is "". */
static uint32_t string_number(struct otlp *otlp, uint32_t row)
{
    return row ? number_of(&otlp->strings, row) : 0;
}

/* The word's number; of a text that is none, that of "custom". */
static uint32_t word_of(const char *text)
{
    for (uint32_t word = 0; word < COUNT_OF(words); word++) {
        if (strcmp(words[word], text) == 0)
            return word;
    }
    return WORD_CUSTOM;
}

static uint32_t word_number(struct otlp *otlp, const char *text)
{
    const struct fgprof_profile *profile = otlp->profile;
    uint32_t word = word_of(text);
    return string_number(otlp, word == WORD_CUSTOM && profile->objects.name
                                   ? profile->objects.name
                                   : (uint32_t)profile->strings.count + word);
}

static uint32_t attribute_number(struct otlp *otlp, const char *key, uint64_t value)
{
    const struct attribute attribute = {key, value};
    uint32_t number;
    if (INDEX_INTERN(&otlp->attribute_index, sizeof attribute, &attribute, &otlp->attributes,
                     &otlp->attribute_count, &otlp->attribute_capacity, &number)) {
        otlp->out.error = -ENOMEM;
        return 0;
    }
    return number + 1;
}

/* Writes a name of the target: see name_append. */
static void put_text(struct otlp *otlp, unsigned field, const char *text)
{
    otlp->clean.length = 0;
    name_append(&otlp->clean, text);
    protobuf_bytes(&otlp->out, field, otlp->clean.bytes, otlp->clean.length);
}

static void put_text_value(struct otlp *otlp, unsigned field, const char *text)
{
    size_t begin = protobuf_begin(&otlp->out, field);
    put_text(otlp, ANY_STRING, text);
    protobuf_end(&otlp->out, begin);
}

static void put_int_value(struct otlp *otlp, unsigned field, uint64_t number)
{
    size_t begin = protobuf_begin(&otlp->out, field);
    protobuf_number(&otlp->out, ANY_INT, number);
    protobuf_end(&otlp->out, begin);
}

static bool is_set(const struct fgprof_profile *profile, const char *key)
{
    for (size_t i = 0; i < profile->attribute_count; i++) {
        if (strcmp(strings_get(&profile->strings, profile->attributes[i].key), key) == 0)
            return true;
    }
    return false;
}

static void put_key_text(struct otlp *otlp, const char *key, const char *text)
{
    size_t begin = protobuf_begin(&otlp->out, RESOURCE_ATTRIBUTE);
    put_text(otlp, KEY_VALUE_KEY, key);
    put_text_value(otlp, KEY_VALUE_VALUE, text);
    protobuf_end(&otlp->out, begin);
}

static void put_resource(struct otlp *otlp, const struct profile_process *process)
{
    const struct fgprof_profile *profile = otlp->profile;
    size_t begin = protobuf_begin(&otlp->out, RESOURCE_PROFILES_RESOURCE);
    const char *name = process ? strings_get(&profile->strings, process->name) : "";
    if (*name && !is_set(profile, "service.name"))
        put_key_text(otlp, "service.name", name);
    if (*name && !is_set(profile, "process.executable.name"))
        put_key_text(otlp, "process.executable.name", name);
    if (process && process->pid && !is_set(profile, "process.pid")) {
        size_t nested = protobuf_begin(&otlp->out, RESOURCE_ATTRIBUTE);
        protobuf_string(&otlp->out, KEY_VALUE_KEY, "process.pid");
        put_int_value(otlp, KEY_VALUE_VALUE, process->pid);
        protobuf_end(&otlp->out, nested);
    }
    for (size_t i = 0; i < profile->attribute_count; i++)
        put_key_text(otlp, strings_get(&profile->strings, profile->attributes[i].key),
                     strings_get(&profile->strings, profile->attributes[i].value));
    protobuf_end(&otlp->out, begin);
}

static void put_value_type(struct otlp *otlp, unsigned field, const char *type, const char *unit)
{
    size_t begin = protobuf_begin(&otlp->out, field);
    protobuf_number(&otlp->out, VALUE_TYPE_TYPE, word_number(otlp, type));
    protobuf_number(&otlp->out, VALUE_TYPE_UNIT, word_number(otlp, unit));
    protobuf_end(&otlp->out, begin);
}

static uint64_t value_of(const struct otlp *otlp, const struct type *type,
                         const struct profile_sample *sample)
{
    struct object_type types[OBJECT_TYPES_MAX];
    if (profile_is_of_objects(otlp->profile)) {
        objects_types(otlp->profile, types);
        return (uint64_t)objects_value(otlp->profile, sample, types[type - otlp->types].measure);
    }
    return strcmp(type->unit, "count") == 0 ? sample_contentions(otlp->profile, sample)
                                            : sample->time_ns;
}

static void put_sample(struct otlp *otlp, const struct type *type,
                       const struct profile_sample *sample)
{
    struct buffer *out = &otlp->out;
    uint64_t value = value_of(otlp, type, sample);
    if (!value)
        return;
    const struct attribute attributes[] = {{thread_name, sample->thread_name},
                                           {thread_id, sample->tid},
                                           {goroutine, sample->goroutine}};
    size_t begin = protobuf_begin(out, PROFILE_SAMPLE);
    protobuf_number(out, SAMPLE_STACK, number_of(&otlp->stacks, sample->stack));
    if (sample->thread_name || sample->tid || sample->goroutine) {
        size_t packed = protobuf_begin(out, SAMPLE_ATTRIBUTES);
        for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
            if (attributes[i].value)
                protobuf_varint(out,
                                attribute_number(otlp, attributes[i].key, attributes[i].value));
        }
        protobuf_end(out, packed);
    }
    size_t packed = protobuf_begin(out, SAMPLE_VALUES);
    protobuf_varint(out, value);
    protobuf_end(out, packed);
    protobuf_end(out, begin);
}

static const struct profile_process *process_of(const struct fgprof_profile *profile,
                                                uint32_t number)
{
    return number < profile->process_count ? &profile->processes[number] : NULL;
}

/* The number of a type for ids. The program's own may have any name, that of another type too. */
static uint64_t type_number(const struct fgprof_profile *profile, const char *type)
{
    return profile->kind == FGPROF_KIND_CUSTOM ? hash_bytes_fixed(type, strlen(type), 0)
                                               : word_of(type);
}

/* 16 bytes that stay the same if the profile is sent again. Processes that have ended may have been
 * joined by name, without a pid. */
static void put_profile_id(struct otlp *otlp, const struct profile_process *process,
                           const struct type *type)
{
    const struct fgprof_profile *profile = otlp->profile;
    const char *name = process ? strings_get(&profile->strings, process->name) : "";
    const uint64_t parts[] = {profile->start_time_ns,
                              profile->summary.elapsed_ns,
                              profile->summary.seed,
                              process ? process->pid : 0,
                              hash_bytes_fixed(name, strlen(name), 0),
                              type_number(profile, type->type),
                              type_number(profile, type->period_type)};
    const uint64_t id[] = {hash_bytes_fixed(parts, sizeof parts, 1),
                           hash_bytes_fixed(parts, sizeof parts, 2)};
    protobuf_bytes(&otlp->out, PROFILE_ID, id, sizeof id);
}

/* Counts have a period of 1. */
static uint64_t period_of(const struct fgprof_profile *profile, const struct type *type)
{
    if (strcmp(type->period_unit, "bytes") == 0 && profile->objects.rate)
        return profile->objects.rate;
    return strcmp(type->period_unit, "nanoseconds") == 0 ? profile->period_ns : 1;
}

static void put_profile(struct otlp *otlp, uint32_t process, size_t number)
{
    const struct fgprof_profile *profile = otlp->profile;
    const struct type *type = &otlp->types[number];
    const struct profile_view *view = &otlp->views[number];
    struct buffer *out = &otlp->out;
    size_t begin = protobuf_begin(out, SCOPE_PROFILES_PROFILE);
    put_value_type(otlp, PROFILE_SAMPLE_TYPE, type->type, type->unit);
    for (size_t i = process ? otlp->ends[number][process - 1] : 0; i < otlp->ends[number][process];
         i++)
        put_sample(otlp, type, &view->samples[i]);
    protobuf_fixed64(out, PROFILE_TIME_UNIX_NANO, profile->start_time_ns);
    protobuf_number(out, PROFILE_DURATION_NANO, profile->summary.elapsed_ns);
    put_value_type(otlp, PROFILE_PERIOD_TYPE, type->period_type, type->period_unit);
    protobuf_number(out, PROFILE_PERIOD, period_of(profile, type));
    put_profile_id(otlp, process_of(profile, process), type);
    protobuf_end(out, begin);
}

/* In pprof's order. */
static size_t types_of_objects(const struct fgprof_profile *profile, struct type types[TYPES_MAX])
{
    struct object_type known[OBJECT_TYPES_MAX];
    size_t count = objects_types(profile, known);
    bool is_heap = objects_are_of_heap(profile);
    for (size_t i = 0; i < count; i++)
        types[i] = (struct type){FGPROF_TIME_WALL, known[i].name, known[i].unit,
                                 is_heap ? "space" : known[0].name, is_heap ? "bytes" : "count"};
    return count;
}

/* The period's type distinguishes block from mutex profiles, whose values have equal types in
 * Go. */
static size_t types_of(const struct fgprof_profile *profile, struct type types[TYPES_MAX])
{
    static const struct type times[] = {
        {FGPROF_TIME_WALL, "wall", "nanoseconds", "wall", "nanoseconds"},
        {FGPROF_TIME_CPU, "cpu", "nanoseconds", "cpu", "nanoseconds"},
        {FGPROF_TIME_OFF_CPU, "off_cpu", "nanoseconds", "off_cpu", "nanoseconds"},
    };
    size_t count = 0;
    if (profile_is_of_objects(profile))
        return types_of_objects(profile, types);
    unsigned wanted = profile->times                         ? profile->times
                      : profile->kept == FGPROF_KEPT_ON_CPU  ? FGPROF_TIME_CPU
                      : profile->kept == FGPROF_KEPT_OFF_CPU ? FGPROF_TIME_OFF_CPU
                                                             : ~0u;
    if (profile->kind == FGPROF_KIND_CPU)
        wanted = FGPROF_TIME_CPU;
    if (profile->kind == FGPROF_KIND_BLAME) {
        types[count++] =
            (struct type){FGPROF_TIME_WALL, "blame", "nanoseconds", "blame", "nanoseconds"};
    } else if (profile_is_of_contentions(profile)) {
        const char *kind = profile->kind == FGPROF_KIND_BLOCK ? "block" : "mutex";
        types[count++] = (struct type){FGPROF_TIME_WALL, "contentions", "count", kind, "count"};
        types[count++] = (struct type){FGPROF_TIME_WALL, "delay", "nanoseconds", kind, "count"};
    } else {
        for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
            if (times[i].times & wanted)
                types[count++] = times[i];
        }
    }
    return count;
}

static void put_resource_profiles(struct otlp *otlp, uint32_t number)
{
    const struct fgprof_profile *profile = otlp->profile;
    size_t begin = protobuf_begin(&otlp->out, REQUEST_RESOURCE_PROFILES);
    put_resource(otlp, process_of(profile, number));
    size_t nested = protobuf_begin(&otlp->out, RESOURCE_PROFILES_SCOPE_PROFILES);
    size_t scope = protobuf_begin(&otlp->out, SCOPE_PROFILES_SCOPE);
    protobuf_string(&otlp->out, SCOPE_NAME, "fgprof-c");
    protobuf_string(&otlp->out, SCOPE_VERSION, fgprof_version());
    protobuf_end(&otlp->out, scope);
    for (size_t i = 0; i < otlp->type_count; i++)
        put_profile(otlp, number, i);
    protobuf_end(&otlp->out, nested);
    protobuf_end(&otlp->out, begin);
}

/* Row 0 of a table. */
static void put_zero(struct otlp *otlp, unsigned table)
{
    protobuf_bytes(&otlp->out, table, NULL, 0);
}

static void put_stacks(struct otlp *otlp)
{
    const struct fgprof_profile *profile = otlp->profile;
    put_zero(otlp, DICTIONARY_STACK);
    for (size_t i = 0; i < otlp->stacks.count; i++) {
        const struct profile_stack *stack = &profile->stacks[otlp->stacks.rows[i]];
        size_t begin = protobuf_begin(&otlp->out, DICTIONARY_STACK);
        size_t packed = protobuf_begin(&otlp->out, STACK_LOCATIONS);
        for (size_t j = 0; j < stack->depth; j++)
            protobuf_varint(
                &otlp->out,
                number_of(&otlp->locations, profile->stack_locations[stack->first_location + j]));
        protobuf_end(&otlp->out, packed);
        protobuf_end(&otlp->out, begin);
    }
}

static void put_line(struct otlp *otlp, const struct profile_line *line)
{
    size_t begin = protobuf_begin(&otlp->out, LOCATION_LINE);
    protobuf_number(&otlp->out, LINE_FUNCTION, number_of(&otlp->functions, line->function));
    protobuf_number(&otlp->out, LINE_LINE, line->line);
    protobuf_end(&otlp->out, begin);
}

static void put_locations(struct otlp *otlp)
{
    const struct fgprof_profile *profile = otlp->profile;
    put_zero(otlp, DICTIONARY_LOCATION);
    for (size_t i = 0; i < otlp->locations.count; i++) {
        const struct profile_location *location = &profile->locations[otlp->locations.rows[i]];
        size_t begin = protobuf_begin(&otlp->out, DICTIONARY_LOCATION);
        if (location->mapping != PROFILE_NO_MAPPING)
            protobuf_number(&otlp->out, LOCATION_MAPPING,
                            number_of(&otlp->mappings, location->mapping));
        protobuf_number(&otlp->out, LOCATION_ADDRESS, location->address);
        for (uint32_t j = 0; j < location->line_count; j++)
            put_line(otlp, &profile->lines[location->first_line + j]);
        protobuf_end(&otlp->out, begin);
    }
}

static void put_functions(struct otlp *otlp)
{
    put_zero(otlp, DICTIONARY_FUNCTION);
    for (size_t i = 0; i < otlp->functions.count; i++) {
        const struct profile_function *function =
            &otlp->profile->functions[otlp->functions.rows[i]];
        size_t begin = protobuf_begin(&otlp->out, DICTIONARY_FUNCTION);
        protobuf_number(&otlp->out, FUNCTION_NAME, string_number(otlp, function->name));
        protobuf_number(&otlp->out, FUNCTION_SYSTEM_NAME,
                        string_number(otlp, function->system_name));
        protobuf_number(&otlp->out, FUNCTION_FILENAME, string_number(otlp, function->file));
        protobuf_end(&otlp->out, begin);
    }
}

static void put_mappings(struct otlp *otlp)
{
    put_zero(otlp, DICTIONARY_MAPPING);
    for (size_t i = 0; i < otlp->mappings.count; i++) {
        const struct profile_mapping *mapping = &otlp->profile->mappings[otlp->mappings.rows[i]];
        size_t begin = protobuf_begin(&otlp->out, DICTIONARY_MAPPING);
        protobuf_number(&otlp->out, MAPPING_START, mapping->start);
        protobuf_number(&otlp->out, MAPPING_LIMIT, mapping->limit);
        protobuf_number(&otlp->out, MAPPING_OFFSET, mapping->offset);
        protobuf_number(&otlp->out, MAPPING_FILENAME, string_number(otlp, mapping->path));
        if (mapping->build_id) {
            uint32_t number = attribute_number(otlp, build_id, mapping->build_id);
            size_t packed = protobuf_begin(&otlp->out, MAPPING_ATTRIBUTES);
            protobuf_varint(&otlp->out, number);
            protobuf_end(&otlp->out, packed);
        }
        protobuf_end(&otlp->out, begin);
    }
}

static void put_attributes(struct otlp *otlp)
{
    put_zero(otlp, DICTIONARY_ATTRIBUTE);
    for (size_t i = 0; i < otlp->attribute_count; i++) {
        const struct attribute *attribute = &otlp->attributes[i];
        size_t begin = protobuf_begin(&otlp->out, DICTIONARY_ATTRIBUTE);
        protobuf_number(&otlp->out, ATTRIBUTE_KEY, word_number(otlp, attribute->key));
        if (attribute->key == thread_id || attribute->key == goroutine)
            put_int_value(otlp, ATTRIBUTE_VALUE, attribute->value);
        else
            put_text_value(otlp, ATTRIBUTE_VALUE,
                           strings_get(&otlp->profile->strings, (uint32_t)attribute->value));
        protobuf_end(&otlp->out, begin);
    }
}

static void put_strings(struct otlp *otlp)
{
    const struct strings *strings = &otlp->profile->strings;
    put_zero(otlp, DICTIONARY_STRING);
    for (size_t i = 0; i < otlp->strings.count; i++) {
        uint32_t row = otlp->strings.rows[i];
        if (row < strings->count)
            put_text(otlp, DICTIONARY_STRING, strings_get(strings, row));
        else
            protobuf_string(&otlp->out, DICTIONARY_STRING, words[row - strings->count]);
    }
}

/* No sample has a link. Link 0 stands for none, and has no fields (profiles.proto). */
static void put_links(struct otlp *otlp)
{
    protobuf_end(&otlp->out, protobuf_begin(&otlp->out, DICTIONARY_LINK));
}

/* A table before those that it refers to. */
static void put_dictionary(struct otlp *otlp)
{
    size_t begin = protobuf_begin(&otlp->out, REQUEST_DICTIONARY);
    put_stacks(otlp);
    put_locations(otlp);
    put_functions(otlp);
    put_mappings(otlp);
    put_links(otlp);
    put_attributes(otlp);
    put_strings(otlp);
    protobuf_end(&otlp->out, begin);
}

/* Orders the samples by their processes, those of one as before. */
static int sort_by_process(struct profile_view *view, size_t processes, size_t **ret_ends)
{
    struct profile_sample *sorted = calloc(view->sample_count + 1, sizeof *sorted);
    size_t *ends = calloc(processes + 1, sizeof *ends), sum = 0;
    *ret_ends = ends;
    if (!sorted || !ends) {
        free(sorted);
        return -ENOMEM;
    }
    for (size_t i = 0; i < view->sample_count; i++)
        ends[view->samples[i].process]++;
    for (size_t i = 0; i <= processes; i++) {
        size_t count = ends[i];
        ends[i] = sum;
        sum += count;
    }
    for (size_t i = 0; i < view->sample_count; i++)
        sorted[ends[view->samples[i].process]++] = view->samples[i];
    free(view->samples);
    view->samples = sorted;
    return 0;
}

static int make_views(struct otlp *otlp)
{
    otlp->type_count = types_of(otlp->profile, otlp->types);
    for (size_t i = 0; i < otlp->type_count; i++) {
        struct profile_view *view = &otlp->views[i];
        if (profile_view_make_times(otlp->profile, otlp->types[i].times, true, view) ||
            sort_by_process(view, otlp->profile->process_count, &otlp->ends[i]))
            return -ENOMEM;
    }
    return 0;
}

static void put_request(struct otlp *otlp)
{
    size_t processes = otlp->profile->process_count;
    otlp->out.error = make_views(otlp);
    if (otlp->out.error)
        return;
    for (uint32_t i = 0; i < processes || i == 0; i++)
        put_resource_profiles(otlp, i);
    put_dictionary(otlp);
}

void output_otlp(const struct fgprof_profile *profile, const struct profile_view *view,
                 struct sink *sink)
{
    struct otlp otlp = {.profile = profile};
    (void)view;
    if (used_init(&otlp.mappings, profile->mapping_count) &&
        used_init(&otlp.locations, profile->location_count) &&
        used_init(&otlp.functions, profile->function_count) &&
        used_init(&otlp.stacks, profile->stack_count) &&
        used_init(&otlp.strings, profile->strings.count + COUNT_OF(words)))
        put_request(&otlp);
    else
        otlp.out.error = -ENOMEM;
    if (!otlp.out.error)
        otlp.out.error = otlp.clean.error;
    if (otlp.out.error && !sink->error)
        sink->error = otlp.out.error;
    sink_write(sink, otlp.out.bytes, otlp.out.length);
    for (size_t i = 0; i < otlp.type_count; i++) {
        profile_view_free(&otlp.views[i]);
        free(otlp.ends[i]);
    }
    used_free(&otlp.mappings);
    used_free(&otlp.locations);
    used_free(&otlp.functions);
    used_free(&otlp.stacks);
    used_free(&otlp.strings);
    free(otlp.attributes);
    index_free(&otlp.attribute_index);
    buffer_free(&otlp.clean);
    buffer_free(&otlp.out);
}
