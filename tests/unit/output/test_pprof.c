#include "make_objects.h"
#include "read_protobuf.h"

#include <errno.h>
#include <stdio.h>

/* A reader of profile.proto (github.com/google/pprof/proto/profile.proto), written from the
 * format's description and not from the writer: it decodes the bytes field by field, in any order.
 */

/* Reads a message in which each field is a varint and occurs at most once. Missing fields are 0. */
static void read_numbers(struct bytes from, uint64_t *numbers, size_t count)
{
    struct field field;
    memset(numbers, 0, count * sizeof *numbers);
    while (read_field(&from, &field)) {
        assert_false(field.is_bytes);
        assert_true(field.number < count);
        assert_int_equal(numbers[field.number], 0);
        numbers[field.number] = field.value;
    }
}

#define READ_MAX 64

struct read_line {
    uint64_t function_id, line;
};

struct read_sample {
    uint64_t locations[READ_MAX], values[READ_MAX];
    size_t location_count, value_count;
    uint64_t labels[READ_MAX][5]; /* by field number: key 1, str 2, num 3, num_unit 4 */
    size_t label_count;
};

struct read_location {
    uint64_t id, mapping_id, address, is_folded;
    struct read_line lines[READ_MAX];
    size_t line_count;
};

struct read_profile {
    uint64_t sample_types[READ_MAX][3]; /* type 1, unit 2 */
    size_t sample_type_count;
    struct read_sample samples[READ_MAX];
    size_t sample_count;
    uint64_t mappings[READ_MAX][11]; /* by field number */
    size_t mapping_count;
    struct read_location locations[READ_MAX];
    size_t location_count;
    uint64_t functions[READ_MAX][6]; /* by field number */
    size_t function_count;
    char *strings[READ_MAX];
    size_t string_count;
    uint64_t period_type[3];
    uint64_t numbers[16]; /* the others, by field number */
    unsigned char *memory;
};

static void read_packed(struct bytes from, uint64_t *values, size_t *count)
{
    while (from.at < from.end) {
        assert_true(*count < READ_MAX);
        values[(*count)++] = read_varint(&from);
    }
}

static void read_sample(struct bytes from, struct read_sample *sample)
{
    struct field field;
    while (read_field(&from, &field)) {
        assert_true(field.is_bytes);
        assert_in_range(field.number, 1, 3);
        if (field.number == 1) {
            read_packed(field.bytes, sample->locations, &sample->location_count);
        } else if (field.number == 2) {
            read_packed(field.bytes, sample->values, &sample->value_count);
        } else {
            assert_true(sample->label_count < READ_MAX);
            read_numbers(field.bytes, sample->labels[sample->label_count++], 5);
        }
    }
}

static void read_location(struct bytes from, struct read_location *location)
{
    struct field field;
    while (read_field(&from, &field)) {
        uint64_t numbers[4];
        assert_int_equal(field.is_bytes, field.number == 4);
        switch (field.number) {
        case 1:
            location->id = field.value;
            break;
        case 2:
            location->mapping_id = field.value;
            break;
        case 3:
            location->address = field.value;
            break;
        case 4:
            read_numbers(field.bytes, numbers, 4);
            location->lines[location->line_count++] = (struct read_line){numbers[1], numbers[2]};
            break;
        default:
            location->is_folded = field.value;
        }
    }
}

static char *read_string(struct bytes from)
{
    size_t length = (size_t)(from.end - from.at);
    char *text = malloc(length + 1);
    assert_non_null(text);
    memcpy(text, from.at, length);
    text[length] = '\0';
    assert_int_equal(strlen(text), length);
    return text;
}

static void read_profile_fields(struct bytes from, struct read_profile *read)
{
    struct field field;
    while (read_field(&from, &field)) {
        assert_true(read->sample_count < READ_MAX && read->location_count < READ_MAX &&
                    read->string_count < READ_MAX && read->function_count < READ_MAX &&
                    read->mapping_count < READ_MAX && read->sample_type_count < READ_MAX);
        switch (field.number) {
        case 1:
            read_numbers(field.bytes, read->sample_types[read->sample_type_count++], 3);
            break;
        case 2:
            read_sample(field.bytes, &read->samples[read->sample_count++]);
            break;
        case 3:
            read_numbers(field.bytes, read->mappings[read->mapping_count++], 11);
            break;
        case 4:
            read_location(field.bytes, &read->locations[read->location_count++]);
            break;
        case 5:
            read_numbers(field.bytes, read->functions[read->function_count++], 6);
            break;
        case 6:
            read->strings[read->string_count++] = read_string(field.bytes);
            break;
        case 11:
            read_numbers(field.bytes, read->period_type, 3);
            break;
        default:
            assert_true(field.number < 16);
            assert_false(field.is_bytes);
            read->numbers[field.number] = field.value;
        }
    }
}

static struct read_profile *read_back(const struct fgprof_profile *profile)
{
    size_t length;
    char *packed = written(profile, FGPROF_PPROF, &length);
    struct bytes plain = gunzip(packed, length);
    struct read_profile *read = calloc(1, sizeof *read);
    assert_non_null(read);
    read->memory = (unsigned char *)plain.at;
    read_profile_fields(plain, read);
    free(packed);
    return read;
}

static void read_free(struct read_profile *read)
{
    for (size_t i = 0; i < read->string_count; i++)
        free(read->strings[i]);
    free(read->memory);
    free(read);
}

static const char *string_at(const struct read_profile *read, uint64_t number)
{
    assert_true(number < read->string_count);
    return read->strings[number];
}

/* A profile with something of everything. */
static struct fgprof_profile *make_rich_profile(void)
{
    struct fgprof_profile *profile = make_profile();
    uint32_t app = make_mapping(profile, 0x400000, "/opt/app", "00ff12");
    uint32_t libc = make_mapping(profile, 0x7f0000000000, "/usr/lib/libc.so.6", "");
    struct made_line lines[] = {
        {"inner", "/src/in.h", 3, true}, {"outer", "/src/a.c", 40, false}, {0}};
    uint32_t unnamed = make_location(profile, 0x7f0000001000, libc, 0, NULL);
    uint32_t work = make_location(profile, 0x401010, app, 0x10, lines);
    uint32_t root = make_function(profile, 0x401100, app, "main", "/src/main.c", 7);
    uint32_t note;
    assert_int_equal(profile_add_note(profile, "[truncated: max depth]", &note), 0);
    MAKE_SAMPLE(profile, "app", 0, 42, unnamed, work, root);
    MAKE_SAMPLE(profile, "worker", 4711, 300, work, note);
    profile->mappings[app].has_functions = true;
    profile->mappings[app].has_files = true;
    profile->mappings[app].has_lines = true;
    profile->mappings[app].has_inlined = true;
    profile->start_time_ns = 1700000000123456789;
    profile->period_ns = 10101010;
    profile->summary.elapsed_ns = 30000000001;
    return profile;
}

static int set_up(void **state)
{
    struct fgprof_profile *profile = make_rich_profile();
    *state = read_back(profile);
    fgprof_profile_free(profile);
    return 0;
}

static int tear_down(void **state)
{
    read_free(*state);
    return 0;
}

static void test_string_table_begins_with_the_empty_one(void **state)
{
    const struct read_profile *read = *state;
    assert_string_equal(string_at(read, 0), "");
    for (size_t i = 0; i < read->string_count; i++) {
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(read->strings[i], read->strings[j]);
    }
}

static void test_value_types_are_those_of_fgprof_and_two_parts_of_time(void **state)
{
    const struct read_profile *read = *state;
    assert_int_equal(read->sample_type_count, 4);
    assert_string_equal(string_at(read, read->sample_types[0][1]), "samples");
    assert_string_equal(string_at(read, read->sample_types[0][2]), "count");
    assert_string_equal(string_at(read, read->sample_types[1][1]), "time");
    assert_string_equal(string_at(read, read->sample_types[1][2]), "nanoseconds");
    assert_string_equal(string_at(read, read->sample_types[2][1]), "on_cpu");
    assert_string_equal(string_at(read, read->sample_types[2][2]), "nanoseconds");
    assert_string_equal(string_at(read, read->sample_types[3][1]), "off_cpu");
    assert_string_equal(string_at(read, read->sample_types[3][2]), "nanoseconds");
    assert_string_equal(string_at(read, read->period_type[1]), "wallclock");
    assert_string_equal(string_at(read, read->period_type[2]), "nanoseconds");
    assert_string_equal(string_at(read, read->numbers[14]), "time");
}

static void test_times(void **state)
{
    const struct read_profile *read = *state;
    assert_int_equal(read->numbers[9], 1700000000123456789);
    assert_int_equal(read->numbers[10], 30000000001);
    assert_int_equal(read->numbers[12], 10101010);
}

static void test_ids_are_not_zero_and_unique(void **state)
{
    const struct read_profile *read = *state;
    assert_int_equal(read->mapping_count, 2);
    assert_int_equal(read->location_count, 4);
    assert_int_equal(read->function_count, 4);
    for (size_t i = 0; i < read->mapping_count; i++) {
        assert_int_not_equal(read->mappings[i][1], 0);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(read->mappings[i][1], read->mappings[j][1]);
    }
    for (size_t i = 0; i < read->location_count; i++) {
        assert_int_not_equal(read->locations[i].id, 0);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(read->locations[i].id, read->locations[j].id);
    }
    for (size_t i = 0; i < read->function_count; i++) {
        assert_int_not_equal(read->functions[i][1], 0);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(read->functions[i][1], read->functions[j][1]);
    }
}

static const struct read_location *location_of(const struct read_profile *read, uint64_t id)
{
    for (size_t i = 0; i < read->location_count; i++) {
        if (read->locations[i].id == id)
            return &read->locations[i];
    }
    fail_msg("no location has the id %llu", (unsigned long long)id);
    return NULL;
}

static const uint64_t *row_of(const uint64_t *rows, size_t columns, size_t count, uint64_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (rows[i * columns + 1] == id)
            return &rows[i * columns];
    }
    fail_msg("no row has the id %llu", (unsigned long long)id);
    return NULL;
}

static void assert_line(const struct read_profile *read, const struct read_line *line,
                        const char *name, const char *file, uint64_t number)
{
    const uint64_t *function =
        row_of(&read->functions[0][0], 6, read->function_count, line->function_id);
    assert_string_equal(string_at(read, function[2]), name);
    assert_string_equal(string_at(read, function[3]), name);
    assert_string_equal(string_at(read, function[4]), file);
    assert_int_equal(line->line, number);
}

static void test_samples_have_their_values_and_leaf_first(void **state)
{
    const struct read_profile *read = *state;
    assert_int_equal(read->sample_count, 2);
    const struct read_sample *sample = &read->samples[0];
    assert_int_equal(sample->value_count, 4);
    assert_int_equal(sample->values[0], 42);
    assert_int_equal(sample->values[1], 42 * 10101010);
    assert_int_equal(sample->location_count, 3);
    assert_int_equal(location_of(read, sample->locations[0])->address, 0x7f0000001000);
    assert_int_equal(location_of(read, sample->locations[1])->address, 0x401010);
    assert_int_equal(location_of(read, sample->locations[2])->address, 0x401100);
    sample = &read->samples[1];
    assert_int_equal(sample->values[0], 300);
    assert_int_equal(sample->values[1], 3030303000);
    assert_int_equal(sample->location_count, 2);
    assert_int_equal(location_of(read, sample->locations[0])->address, 0x401010);
}

static void test_labels_have_one_value_a_key(void **state)
{
    const struct read_profile *read = *state;
    const struct read_sample *sample = &read->samples[0];
    assert_int_equal(sample->label_count, 2);
    assert_string_equal(string_at(read, sample->labels[0][1]), "thread");
    assert_string_equal(string_at(read, sample->labels[0][2]), "app");
    assert_int_equal(sample->labels[0][3], 0);
    assert_string_equal(string_at(read, sample->labels[1][1]), "state");
    assert_string_equal(string_at(read, sample->labels[1][2]), "unknown");
    sample = &read->samples[1];
    assert_int_equal(sample->label_count, 3);
    assert_string_equal(string_at(read, sample->labels[0][1]), "thread");
    assert_string_equal(string_at(read, sample->labels[0][2]), "worker");
    assert_string_equal(string_at(read, sample->labels[1][1]), "tid");
    assert_int_equal(sample->labels[1][2], 0);
    assert_int_equal(sample->labels[1][3], 4711);
}

static void test_lines_are_innermost_first(void **state)
{
    const struct read_profile *read = *state;
    const struct read_location *location = location_of(read, read->samples[0].locations[1]);
    assert_int_equal(location->line_count, 2);
    assert_line(read, &location->lines[0], "inner", "/src/in.h", 3);
    assert_line(read, &location->lines[1], "outer", "/src/a.c", 40);
    location = location_of(read, read->samples[0].locations[2]);
    assert_int_equal(location->line_count, 1);
    assert_line(read, &location->lines[0], "main", "/src/main.c", 7);
    /* A location without a name has no line, so that pprof can look it up. */
    location = location_of(read, read->samples[0].locations[0]);
    assert_int_equal(location->line_count, 0);
}

static void test_notes_have_a_name_and_no_place(void **state)
{
    const struct read_profile *read = *state;
    const struct read_location *location = location_of(read, read->samples[1].locations[1]);
    assert_int_equal(location->mapping_id, 0);
    assert_int_equal(location->address, 0);
    assert_int_equal(location->line_count, 1);
    assert_line(read, &location->lines[0], "[truncated: max depth]", "", 0);
}

static void test_mappings(void **state)
{
    const struct read_profile *read = *state;
    const struct read_location *in_app = location_of(read, read->samples[0].locations[2]);
    const struct read_location *in_libc = location_of(read, read->samples[0].locations[0]);
    const uint64_t *app =
        row_of(&read->mappings[0][0], 11, read->mapping_count, in_app->mapping_id);
    const uint64_t *libc =
        row_of(&read->mappings[0][0], 11, read->mapping_count, in_libc->mapping_id);
    /* pprof takes the first one as the main binary. */
    assert_ptr_equal(app, read->mappings[0]);
    assert_int_equal(app[2], 0x400000);
    assert_int_equal(app[3], 0x500000);
    assert_int_equal(app[4], 0x1000);
    assert_string_equal(string_at(read, app[5]), "/opt/app");
    assert_string_equal(string_at(read, app[6]), "00ff12");
    assert_string_equal(string_at(read, libc[5]), "/usr/lib/libc.so.6");
    assert_string_equal(string_at(read, libc[6]), "");
    for (size_t flag = 7; flag <= 10; flag++) {
        assert_int_equal(app[flag], 1);
        assert_int_equal(libc[flag], 0);
    }
}

static void test_each_flag_of_a_mapping_is_its_own(void **state)
{
    (void)state;
    for (unsigned flag = 0; flag < 4; flag++) {
        struct fgprof_profile *profile = make_profile();
        uint32_t number = make_mapping(profile, 0x400000, "/opt/app", "");
        struct profile_mapping *mapping = &profile->mappings[number];
        mapping->has_functions = flag == 0;
        mapping->has_files = flag == 1;
        mapping->has_lines = flag == 2;
        mapping->has_inlined = flag == 3;
        struct read_profile *read = read_back(profile);
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(read->mappings[0][7 + i], i == flag);
        read_free(read);
        fgprof_profile_free(profile);
    }
}

/* One location of the mapping has everything, and another lacks one thing: the mapping does not
 * claim that one, whichever location comes first. */
static void test_a_mapping_claims_only_what_is_wholly_true(void **state)
{
    (void)state;
    static const struct made_line known[] = {{"main", "/main.c", 1, false}, {0}};
    static const struct {
        struct made_line lines[3];
        bool has_debug_info;
        bool claims[4]; /* functions, files, lines, inlined calls */
    } cases[] = {
        {{{"f", "/f.c", 7, false}}, true, {true, true, true, true}},
        {{{"f", "/f.c", 7, true}, {"g", "/g.c", 8, false}}, true, {true, true, true, true}},
        {{{"f", "", 7, false}}, true, {true, false, true, true}},
        {{{"f", "/f.c", 0, false}}, true, {true, true, false, true}},
        {{{"f", "/f.c", 7, false}}, false, {true, true, true, false}},
        {{{"f", "", 7, true}, {"g", "/g.c", 8, false}}, true, {true, false, true, true}},
        {{{"f", "/f.c", 0, true}, {"g", "/g.c", 8, false}}, true, {true, true, false, true}},
        {{{0}}, false, {false, false, false, false}},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        struct fgprof_profile *profile = make_profile();
        uint32_t app = make_mapping(profile, 0x400000, "/opt/app", "");
        make_mapping(profile, 0x7f0000000000, "/usr/lib/unused.so", "");
        for (size_t j = 0; j < 2; j++) {
            bool is_known = j == i % 2;
            uint32_t location =
                make_location(profile, 0x401000 + j, app, 0, is_known ? known : cases[i / 2].lines);
            profile->locations[location].has_debug_info = is_known || cases[i / 2].has_debug_info;
        }
        profile_finish(profile);
        struct read_profile *read = read_back(profile);
        for (size_t flag = 0; flag < 4; flag++) {
            assert_int_equal(read->mappings[0][7 + flag], cases[i / 2].claims[flag]);
            assert_int_equal(read->mappings[1][7 + flag], 0);
        }
        read_free(read);
        fgprof_profile_free(profile);
    }
}

static void test_nothing_sampled(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    struct read_profile *read = read_back(profile);
    assert_int_equal(read->sample_count, 0);
    assert_int_equal(read->sample_type_count, 4);
    assert_string_equal(string_at(read, 0), "");
    assert_string_equal(string_at(read, read->sample_types[1][1]), "time");
    read_free(read);
    fgprof_profile_free(profile);
}

/* Strings in a proto3 message must be UTF-8; readers reject others. */
static void test_strings_are_made_utf8(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t leaf = make_function(profile, 1, PROFILE_NO_MAPPING, "f\xff\x1b[2J", "/\xc3(.c", 1);
    MAKE_SAMPLE(profile, "t\x80", 0, 1, leaf);
    struct read_profile *read = read_back(profile);
    assert_string_equal(string_at(read, read->functions[0][2]), "f\\xff\\x1b[2J");
    assert_string_equal(string_at(read, read->functions[0][4]), "/\\xc3(.c");
    assert_string_equal(string_at(read, read->samples[0].labels[0][2]), "t\\x80");
    read_free(read);
    fgprof_profile_free(profile);
}

static void test_a_name_may_be_a_word_of_the_format(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t leaf = make_function(profile, 1, PROFILE_NO_MAPPING, "samples", "time", 1);
    MAKE_SAMPLE(profile, "thread", 0, 1, leaf);
    struct read_profile *read = read_back(profile);
    assert_string_equal(string_at(read, read->functions[0][2]), "samples");
    assert_string_equal(string_at(read, read->functions[0][4]), "time");
    assert_string_equal(string_at(read, read->sample_types[0][1]), "samples");
    assert_string_equal(string_at(read, read->samples[0].labels[0][1]), "thread");
    assert_string_equal(string_at(read, read->samples[0].labels[0][2]), "thread");
    read_free(read);
    fgprof_profile_free(profile);
}

static void test_large_values(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t app = make_mapping(profile, 0xffffffff80000000, "/x", "");
    uint32_t leaf = make_location(profile, 0xffffffff80000010, app, 0, NULL);
    struct profile_sample sample = {.tid = UINT32_MAX, .count = INT64_MAX, .time_ns = INT64_MAX};
    assert_int_equal(profile_add_stack(profile, &leaf, 1, &sample.stack), 0);
    assert_int_equal(profile_add_sample(profile, &sample, NULL), 0);
    struct read_profile *read = read_back(profile);
    assert_true(read->samples[0].values[0] == INT64_MAX);
    assert_true(read->samples[0].values[1] == INT64_MAX);
    assert_int_equal(read->samples[0].labels[0][3], UINT32_MAX);
    assert_true(read->locations[0].address == 0xffffffff80000010);
    assert_true(read->mappings[0][2] == 0xffffffff80000000);
    read_free(read);
    fgprof_profile_free(profile);
}

static void assert_label(const struct read_profile *read, size_t sample, size_t label,
                         const char *key, const char *value)
{
    assert_true(label < read->samples[sample].label_count);
    assert_string_equal(string_at(read, read->samples[sample].labels[label][1]), key);
    assert_string_equal(string_at(read, read->samples[sample].labels[label][2]), value);
}

static void test_processes(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    make_two_processes(profile, make_function(profile, 1, PROFILE_NO_MAPPING, "f", "", 0));
    struct read_profile *read = read_back(profile);
    assert_int_equal(read->sample_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_label(read, i, 0, "process", i ? "a;b c" : "make");
        assert_string_equal(string_at(read, read->samples[i].labels[1][1]), "pid");
        assert_int_equal(read->samples[i].labels[1][3], 70 + i);
    }
    read_free(read);
    fgprof_profile_free(profile);
}

static void test_states(void **state)
{
    (void)state;
    static const char *const names[THREAD_STATE_COUNT] = {
        "unknown", "running", "runnable", "sleeping", "uninterruptible", "stopped",
    };
    struct fgprof_profile *profile = make_profile();
    uint32_t leaf = make_function(profile, 1, PROFILE_NO_MAPPING, "f", "", 0);
    for (uint32_t i = 0; i < THREAD_STATE_COUNT; i++)
        make_state(profile, leaf, i, "", "", 1 + i);
    struct read_profile *read = read_back(profile);
    assert_int_equal(read->sample_count, THREAD_STATE_COUNT);
    for (uint32_t i = 0; i < THREAD_STATE_COUNT; i++) {
        const uint64_t *values = read->samples[i].values;
        assert_label(read, i, 1, "state", names[i]);
        assert_int_equal(values[0], 1 + i);
        assert_int_equal(values[1], (1 + i) * 10101010);
        assert_int_equal(values[2], i == THREAD_RUNNING ? values[1] : 0);
        assert_int_equal(values[3], i == THREAD_RUNNING ? 0 : values[1]);
    }
    read_free(read);
    fgprof_profile_free(profile);
}

static void test_labels_of_waits(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t leaf = make_function(profile, 1, PROFILE_NO_MAPPING, "f", "", 0);
    make_state(profile, leaf, THREAD_SLEEPING, "futex", "", 1);
    make_state(profile, leaf, THREAD_UNINTERRUPTIBLE, "read", "io_schedule", 1);
    struct read_profile *read = read_back(profile);
    assert_int_equal(read->samples[0].label_count, 3);
    assert_label(read, 0, 2, "syscall", "futex");
    assert_int_equal(read->samples[1].label_count, 4);
    assert_label(read, 1, 1, "state", "uninterruptible");
    assert_label(read, 1, 2, "syscall", "read");
    assert_label(read, 1, 3, "wait_channel", "io_schedule");
    read_free(read);
    fgprof_profile_free(profile);
}

static void test_labels_of_a_wait(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t leaf = make_function(profile, 1, PROFILE_NO_MAPPING, "f", "", 0);
    make_wait(profile, leaf, NULL, 1);
    struct read_profile *read = read_back(profile);
    assert_int_equal(read->samples[0].label_count, 6);
    assert_label(read, 0, 3, "wait", "mutex");
    assert_label(read, 0, 4, "resource", "mutex g_lock");
    assert_label(read, 0, 5, "owner", "boss");
    read_free(read);
    fgprof_profile_free(profile);
}

static void test_only_what_is_kept_is_written(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t leaf = make_function(profile, 1, PROFILE_NO_MAPPING, "f", "", 0);
    make_state(profile, leaf, THREAD_RUNNING, "", "", 1);
    make_state(profile, leaf, THREAD_SLEEPING, "", "", 1);
    make_state(profile, leaf, THREAD_RUNNABLE, "", "", 1);
    static const size_t counts[] = {3, 1, 2};
    for (size_t kept = 0; kept < 3; kept++) {
        assert_int_equal(fgprof_profile_set_kept(profile, (enum fgprof_kept)kept), 0);
        struct read_profile *read = read_back(profile);
        assert_int_equal(read->sample_count, counts[kept]);
        for (size_t i = 0; i < read->sample_count && kept; i++)
            assert_int_equal(read->samples[i].values[2] != 0, kept == FGPROF_KEPT_ON_CPU);
        read_free(read);
    }
    fgprof_profile_free(profile);
}

/* Each sample has one more value if elapsed time is known. */
static void test_elapsed_time(void **state)
{
    struct fgprof_profile *profile = make_profile();
    (void)state;
    MAKE_SAMPLE(profile, "app", 0, 3, make_function(profile, 1, PROFILE_NO_MAPPING, "f", "", 0));
    make_elapsed(profile);
    struct read_profile *read = read_back(profile);
    assert_int_equal(read->sample_type_count, 5);
    assert_string_equal(string_at(read, read->sample_types[4][1]), "elapsed");
    assert_string_equal(string_at(read, read->sample_types[4][2]), "nanoseconds");
    assert_string_equal(string_at(read, read->numbers[14]), "time");
    assert_int_equal(read->sample_count, 2);
    assert_int_equal(read->samples[0].value_count, 5);
    assert_int_equal(read->samples[0].values[4], 10000000);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(read->samples[1].values[i], 0);
    assert_int_equal(read->samples[1].values[4], 20000000);
    assert_int_equal(read->samples[0].label_count, 2);
    assert_int_equal(read->samples[1].label_count, 0); /* no thread and no state */
    read_free(read);
    fgprof_profile_free(profile);
}

/* The comment is there, whether or not the command line is known. */
static void test_contentions(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct fgprof_profile *profile = make_profile();
        uint32_t place = make_function(profile, 0x1000, PROFILE_NO_MAPPING, "work", "", 0);
        make_wait(profile, place, &place, 7);
        make_wait(profile, place, NULL, 2);
        make_sleeps(profile);
        assert_int_equal(fgprof_profile_set_command(profile, i ? "fgprof-c run" : NULL), 0);
        assert_int_equal(fgprof_profile_set_kind(profile, FGPROF_KIND_MUTEX), 0);
        struct read_profile *read = read_back(profile);
        assert_int_equal(read->sample_count, 2);
        for (size_t j = 0; j < 2; j++) {
            assert_int_equal(read->samples[j].value_count, 2);
            assert_int_equal(read->samples[j].values[0], j);
            assert_int_equal(read->samples[j].values[1], j ? 20202020 : 70707070);
        }
        const char *comment = string_at(read, read->numbers[13]);
        assert_int_equal(strncmp(comment, "contentions: estimated from the kernel's count", 46), 0);
        read_free(read);
        fgprof_profile_free(profile);
    }
}

/* The reason follows all other comments. */
static void test_reason(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct fgprof_profile *profile = make_profile();
        uint32_t place = make_function(profile, 0x1000, PROFILE_NO_MAPPING, "work", "", 0);
        make_wait(profile, place, &place, 7);
        assert_int_equal(fgprof_profile_set_command(profile, i & 1 ? "fgprof-c record" : NULL), 0);
        if (i & 2)
            assert_int_equal(fgprof_profile_set_kind(profile, FGPROF_KIND_MUTEX), 0);
        assert_int_equal(fgprof_profile_set_reason(profile, "SIGUSR1\n"), 0);
        struct read_profile *read = read_back(profile);
        assert_string_equal(string_at(read, read->numbers[13]), "reason: SIGUSR1\\x0a");
        read_free(read);
        fgprof_profile_free(profile);
    }
}

/* Named as servers for continuous profiling name them, and without labels. */
static void test_chosen_times(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    uint32_t place = make_function(profile, 0x1000, PROFILE_NO_MAPPING, "f", "", 0);
    make_state(profile, place, THREAD_RUNNING, "", "", 2);
    make_state(profile, place, THREAD_SLEEPING, "futex", "futex_wait", 3);
    make_state(profile, place, THREAD_RUNNABLE, "", "", 4);
    static const struct {
        const char *type;
        unsigned times;
        uint64_t ticks;
    } rows[] = {{"wall", FGPROF_TIME_WALL, 9},
                {"cpu", FGPROF_TIME_CPU, 2},
                {"off_cpu", FGPROF_TIME_OFF_CPU, 7}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(fgprof_profile_set_times(profile, rows[i].times), 0);
        struct read_profile *read = read_back(profile);
        assert_int_equal(read->sample_type_count, 1);
        assert_string_equal(string_at(read, read->sample_types[0][1]), rows[i].type);
        assert_string_equal(string_at(read, read->sample_types[0][2]), "nanoseconds");
        assert_string_equal(string_at(read, read->period_type[1]), rows[i].type);
        assert_string_equal(string_at(read, read->numbers[14]), rows[i].type);
        assert_int_equal(read->sample_count, 1);
        assert_int_equal(read->samples[0].label_count, 0);
        assert_int_equal(read->samples[0].value_count, 1);
        assert_int_equal(read->samples[0].values[0], rows[i].ticks * 10101010);
        read_free(read);
    }
    assert_int_equal(fgprof_profile_set_times(profile, 8), -EINVAL);
    fgprof_profile_free(profile);
}

/* "type/unit ..." of all types, then the period, then the default type. */
static void assert_head(const struct read_profile *read, const char *expected)
{
    char head[300] = "";
    for (size_t i = 0; i < read->sample_type_count; i++)
        sprintf(head + strlen(head), "%s/%s ", string_at(read, read->sample_types[i][1]),
                string_at(read, read->sample_types[i][2]));
    sprintf(head + strlen(head), "period %s/%s %lu, first %s",
            string_at(read, read->period_type[1]), string_at(read, read->period_type[2]),
            (unsigned long)read->numbers[12], string_at(read, read->numbers[14]));
    assert_string_equal(head, expected);
}

static void assert_values(const struct read_profile *read, size_t sample, size_t count,
                          const int64_t *values)
{
    assert_int_equal(read->samples[sample].value_count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal((int64_t)read->samples[sample].values[i], values[i]);
}
#define ASSERT_VALUES(read, sample, ...)                                                           \
    assert_values(read, sample, sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t),                  \
                  (const int64_t[]){__VA_ARGS__})

#define HEAP_TYPES                                                                                 \
    "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes "                 \
    "period space/bytes 524288, first "

static void test_heap(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_heap();
    assert_int_equal(fgprof_profile_set_command(profile, "fgprof-c run --kind heap"), 0);
    struct read_profile *read = read_back(profile);
    assert_head(read, HEAP_TYPES "inuse_space");
    assert_int_equal(read->sample_count, 3);
    ASSERT_VALUES(read, 0, 101656, 52454604, 60994, 31472763);
    ASSERT_VALUES(read, 1, 9, 9701573, 0, 0);
    ASSERT_VALUES(read, 2, 386, 1579016, 386, 1579016);
    for (size_t i = 0; i < 3; i++) {
        static const uint64_t sizes[] = {516, 1 << 20, 4096};
        assert_int_equal(read->samples[i].label_count, 1);
        assert_string_equal(string_at(read, read->samples[i].labels[0][1]), "bytes");
        assert_int_equal(read->samples[i].labels[0][3], sizes[i]);
        assert_string_equal(string_at(read, read->samples[i].labels[0][4]), "bytes");
    }
    assert_string_equal(string_at(read, read->numbers[13]), "fgprof-c run --kind heap");
    assert_int_equal(read->numbers[10], 60000000000);
    read_free(read);
    assert_int_equal(fgprof_profile_set_kind(profile, FGPROF_KIND_ALLOCS), 0);
    profile->objects.gone_lost = 2;
    read = read_back(profile);
    assert_head(read, HEAP_TYPES "alloc_space");
    assert_non_null(strstr(string_at(read, read->numbers[13]), "and 2 that are gone"));
    read_free(read);
    /* Servers store a series for each distinct set of labels. */
    assert_int_equal(fgprof_profile_set_times(profile, FGPROF_TIME_WALL), 0);
    read = read_back(profile);
    assert_head(read, HEAP_TYPES "alloc_space");
    assert_int_equal(read->sample_count, 3);
    assert_int_equal(read->samples[0].label_count, 0);
    ASSERT_VALUES(read, 0, 101656, 52454604, 60994, 31472763);
    read_free(read);
    fgprof_profile_free(profile);
}

static void test_all_allocations_were_seen(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_heap();
    profile->objects.rate = 0;
    struct read_profile *read = read_back(profile);
    assert_int_equal(read->numbers[12], 1);
    ASSERT_VALUES(read, 0, 100, 51600, 60, 30960);
    read_free(read);
    fgprof_profile_free(profile);
}

static void test_other_objects(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_growth();
    struct read_profile *read = read_back(profile);
    assert_head(read, "faults/count rss/bytes period faults/count 1, first rss");
    ASSERT_VALUES(read, 0, 700, 500 * 4096);
    ASSERT_VALUES(read, 1, 1, 2 << 20);
    ASSERT_VALUES(read, 2, 50, 0);
    read_free(read);
    fgprof_profile_free(profile);

    profile = make_threads();
    read = read_back(profile);
    assert_head(read, "threadcreate/count period threadcreate/count 1, first threadcreate");
    assert_int_equal(read->sample_count, 3);
    ASSERT_VALUES(read, 2, 1);
    assert_int_equal(read->samples[2].label_count, 2);
    assert_label(read, 2, 0, "thread", "log");
    assert_int_equal(read->samples[2].labels[1][3], 23);
    read_free(read);
    fgprof_profile_free(profile);

    profile = make_custom("open\nfiles");
    read = read_back(profile);
    assert_head(read, "open\\x0afiles/count period open\\x0afiles/count 1, first open\\x0afiles");
    assert_int_equal(read->sample_count, 1);
    ASSERT_VALUES(read, 0, 5);
    assert_int_equal(read->samples[0].label_count, 0);
    read_free(read);
    fgprof_profile_free(profile);
}

/* Negative, as in Go's profiles with "seconds". */
static void test_what_went_is_negative(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_kind(FGPROF_KIND_HEAP);
    MAKE_OBJECTS(profile, 100, 1, 3, MADE_MAIN);
    struct read_profile *read = read_back(profile);
    ASSERT_VALUES(read, 0, 1, 100, -2, -200);
    read_free(read);
    fgprof_profile_free(profile);
}

#define WITH_RICH_PROFILE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RICH_PROFILE(test_string_table_begins_with_the_empty_one),
        WITH_RICH_PROFILE(test_value_types_are_those_of_fgprof_and_two_parts_of_time),
        WITH_RICH_PROFILE(test_times),
        WITH_RICH_PROFILE(test_ids_are_not_zero_and_unique),
        WITH_RICH_PROFILE(test_samples_have_their_values_and_leaf_first),
        WITH_RICH_PROFILE(test_labels_have_one_value_a_key),
        WITH_RICH_PROFILE(test_lines_are_innermost_first),
        WITH_RICH_PROFILE(test_notes_have_a_name_and_no_place),
        WITH_RICH_PROFILE(test_mappings),
        cmocka_unit_test(test_each_flag_of_a_mapping_is_its_own),
        cmocka_unit_test(test_a_mapping_claims_only_what_is_wholly_true),
        cmocka_unit_test(test_nothing_sampled),
        cmocka_unit_test(test_strings_are_made_utf8),
        cmocka_unit_test(test_a_name_may_be_a_word_of_the_format),
        cmocka_unit_test(test_large_values),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_labels_of_waits),
        cmocka_unit_test(test_labels_of_a_wait),
        cmocka_unit_test(test_only_what_is_kept_is_written),
        cmocka_unit_test(test_elapsed_time),
        cmocka_unit_test(test_contentions),
        cmocka_unit_test(test_reason),
        cmocka_unit_test(test_chosen_times),
        cmocka_unit_test(test_heap),
        cmocka_unit_test(test_all_allocations_were_seen),
        cmocka_unit_test(test_other_objects),
        cmocka_unit_test(test_what_went_is_negative),
    };
    return cmocka_run_group_tests_name("output_pprof", tests, NULL, NULL);
}
