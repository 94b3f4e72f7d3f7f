/* Profiles built by hand, for the tests of the writers. */
#ifndef FGPROF_TESTS_MAKE_PROFILE_H
#define FGPROF_TESTS_MAKE_PROFILE_H

#include "unit.h"
#include "base/array.h"
#include "output/output.h"

struct made_line {
    const char *name; /* NULL ends the array */
    const char *file;
    uint32_t line;
    bool is_inlined;
};

static inline struct fgprof_profile *make_profile(void)
{
    struct fgprof_profile *profile;
    assert_int_equal(profile_new(&profile), 0);
    return profile;
}

static inline uint32_t make_string(struct fgprof_profile *profile, const char *text)
{
    uint32_t id;
    assert_int_equal(strings_intern(&profile->strings, text, &id), 0);
    return id;
}

static inline uint32_t make_mapping(struct fgprof_profile *profile, uint64_t start,
                                    const char *path, const char *build_id)
{
    uint32_t number;
    struct profile_mapping mapping = {
        .start = start,
        .limit = start + 0x100000,
        .offset = 0x1000,
        .path = make_string(profile, path),
        .build_id = make_string(profile, build_id),
    };
    assert_int_equal(profile_add_mapping(profile, &mapping, &number), 0);
    return number;
}

/* `lines`: innermost first; a line without a name ends the array. NULL: the location has no name.
 */
static inline uint32_t make_location(struct fgprof_profile *profile, uint64_t address,
                                     uint32_t mapping, uint64_t function_offset,
                                     const struct made_line *lines)
{
    struct profile_line made[8];
    size_t count = 0;
    uint32_t location;
    bool is_new;
    assert_int_equal(profile_add_location(profile, address, mapping, &location, &is_new), 0);
    assert_true(is_new);
    for (; lines && lines->name; lines++, count++) {
        assert_true(count < sizeof made / sizeof *made);
        made[count] = (struct profile_line){.line = lines->line, .is_inlined = lines->is_inlined};
        assert_int_equal(profile_add_function(profile, lines->name, lines->name, lines->file,
                                              &made[count].function),
                         0);
    }
    if (count)
        assert_int_equal(profile_set_lines(profile, location, made, count), 0);
    profile->locations[location].function_offset = function_offset;
    return location;
}

/* A location with one function, at `line` of `file`. */
static inline uint32_t make_function(struct fgprof_profile *profile, uint64_t address,
                                     uint32_t mapping, const char *name, const char *file,
                                     uint32_t line)
{
    struct made_line lines[] = {{name, file, line, false}, {0}};
    return make_location(profile, address, mapping, address & 0xff, lines);
}

/* Threads must be added with ascending ids. */
static inline void make_birth(struct fgprof_profile *profile, uint32_t tid, const char *maker,
                              const char *function)
{
    assert_int_equal(
        array_reserve(&profile->births, &profile->birth_capacity, profile->birth_count + 1), 0);
    profile->births[profile->birth_count++] =
        (struct profile_birth){tid, make_string(profile, maker), make_string(profile, function)};
}

/* `locations`: leaf first. */
static inline void make_sample(struct fgprof_profile *profile, const uint32_t *locations,
                               size_t depth, const char *thread, uint32_t tid, uint64_t count)
{
    struct profile_sample sample = {
        .thread_name = make_string(profile, thread),
        .tid = tid,
        .count = count,
        .time_ns = count * 10101010,
    };
    assert_int_equal(profile_add_stack(profile, locations, depth, &sample.stack), 0);
    assert_int_equal(profile_add_sample(profile, &sample, NULL), 0);
}

/* A sample of thread "app" with one frame. */
static inline void make_state(struct fgprof_profile *profile, uint32_t location,
                              enum thread_state state, const char *syscall_name,
                              const char *wait_channel, uint64_t count)
{
    struct profile_sample sample = {
        .thread_name = make_string(profile, "app"),
        .state = state,
        .syscall_name = make_string(profile, syscall_name),
        .wait_channel = make_string(profile, wait_channel),
        .count = count,
        .time_ns = count * 10101010,
    };
    assert_int_equal(profile_add_stack(profile, &location, 1, &sample.stack), 0);
    assert_int_equal(profile_add_sample(profile, &sample, NULL), 0);
}

/* Thread "app" waits in one frame for a mutex that thread "boss" of its process holds. `owner`:
 * where "boss" is; NULL: unknown. */
static inline void make_wait(struct fgprof_profile *profile, uint32_t location,
                             const uint32_t *owner, uint64_t count)
{
    struct profile_wait wait = {
        .kind = make_string(profile, "mutex"),
        .resource = make_string(profile, "mutex g_lock"),
        .owner_name = make_string(profile, "boss"),
        .owner_stack = PROFILE_NO_STACK,
    };
    struct profile_sample sample = {
        .thread_name = make_string(profile, "app"),
        .state = THREAD_SLEEPING,
        .syscall_name = make_string(profile, "futex"),
        .count = count,
        .time_ns = count * 10101010,
    };
    uint32_t row;
    if (owner)
        assert_int_equal(profile_add_stack(profile, owner, 1, &wait.owner_stack), 0);
    assert_int_equal(profile_add_stack(profile, &location, 1, &sample.stack), 0);
    assert_int_equal(profile_add_wait(profile, &wait, &row), 0);
    sample.wait_plus_1 = row + 1;
    assert_int_equal(profile_add_sample(profile, &sample, NULL), 0);
}

/* Labels sample number `sample`. `pairs`: keys and values; NULL ends the array. */
static inline void make_labels(struct fgprof_profile *profile, size_t sample,
                               const char *const *pairs)
{
    uint32_t set;
    assert_int_equal(profile_add_label_set(profile, &set), 0);
    for (; *pairs; pairs += 2)
        assert_int_equal(profile_add_label(profile, pairs[0], pairs[1]), 0);
    profile->samples[sample].label_set_plus_1 = set + 1;
}

#define MAKE_LABELS(profile, sample, ...)                                                          \
    make_labels(profile, sample, (const char *const[]){__VA_ARGS__, NULL})

/* Each sample counts as one wait, except the first whose owner's place is known, which counts as
 * none. */
static inline void make_sleeps(struct fgprof_profile *profile)
{
    bool had_one = false;
    profile->has_sleeps = true;
    for (size_t i = 0; i < profile->sample_count; i++) {
        uint32_t wait_plus_1 = profile->samples[i].wait_plus_1;
        bool is_first = !had_one && wait_plus_1 &&
                        profile->waits[wait_plus_1 - 1].owner_stack != PROFILE_NO_STACK;
        profile->samples[i].sleeps = !is_first;
        had_one = had_one || is_first;
    }
}

/* Two processes, "make" and "a;b c", with one sample each, of the same stack and thread. */
static inline void make_two_processes(struct fgprof_profile *profile, uint32_t location)
{
    static const char *const names[] = {"make", "a;b c"};
    for (uint32_t i = 0; i < 2; i++) {
        struct profile_sample sample = {.thread_name = make_string(profile, "app"), .count = 2 + i};
        assert_int_equal(profile_add_process(profile, 70 + i, names[i], &sample.process), 0);
        assert_int_equal(profile_add_stack(profile, &location, 1, &sample.stack), 0);
        assert_int_equal(profile_add_sample(profile, &sample, NULL), 0);
    }
}

/* Gives each sample 10 ms of elapsed time, and 20 ms to idle time. */
static inline void make_elapsed(struct fgprof_profile *profile)
{
    struct profile_sample idle = {.state = THREAD_SLEEPING, .elapsed_ns = 20000000};
    uint32_t location;
    for (size_t i = 0; i < profile->sample_count; i++)
        profile->samples[i].elapsed_ns = 10000000;
    assert_int_equal(profile_add_note(profile, PROFILE_IDLE, &location), 0);
    assert_int_equal(profile_add_stack(profile, &location, 1, &idle.stack), 0);
    assert_int_equal(profile_add_sample(profile, &idle, NULL), 0);
    profile->has_elapsed = true;
    profile->parallel_ns = calloc(2, sizeof *profile->parallel_ns);
    assert_non_null(profile->parallel_ns);
    profile->parallel_count = profile->parallel_capacity = 2;
    profile->parallel_ns[0] = 20000000;
    profile->parallel_ns[1] = 10000000;
}

#define MAKE_SAMPLE(profile, thread, tid, count, ...)                                              \
    make_sample(profile, (const uint32_t[]){__VA_ARGS__},                                          \
                sizeof(uint32_t[]){__VA_ARGS__} / sizeof(uint32_t), thread, tid, count)

/* The output of a writer for the profile. The caller frees it. */
static inline char *written(const struct fgprof_profile *profile, enum fgprof_format format,
                            size_t *ret_length)
{
    int fd = file_of_text("");
    assert_int_equal(fgprof_profile_write(profile, format, fd), 0);
    char *text = contents_of(fd, ret_length);
    close(fd);
    return text;
}

static inline void assert_written_alike(const struct fgprof_profile *one,
                                        const struct fgprof_profile *two, enum fgprof_format format)
{
    size_t length[2];
    char *text[2] = {written(one, format, &length[0]), written(two, format, &length[1])};
    assert_int_equal(length[0], length[1]);
    assert_memory_equal(text[0], text[1], length[0]);
    free(text[0]);
    free(text[1]);
}

static inline void assert_written(const struct fgprof_profile *profile, enum fgprof_format format,
                                  const char *expected)
{
    char *text = written(profile, format, NULL);
    assert_string_equal(text, expected);
    free(text);
}

/* Checks that brackets in JSON match. */
static inline void assert_brackets_match(const char *json)
{
    char open[64];
    size_t depth = 0;
    bool is_in_string = false;
    for (const char *at = json; *at; at++) {
        if (is_in_string && *at == '\\') {
            assert_true(*++at);
        } else if (*at == '"') {
            is_in_string = !is_in_string;
        } else if (!is_in_string && (*at == '{' || *at == '[')) {
            assert_true(depth < sizeof open);
            open[depth++] = *at;
        } else if (!is_in_string && (*at == '}' || *at == ']')) {
            assert_true(depth > 0);
            assert_int_equal(open[--depth], *at == '}' ? '{' : '[');
        }
    }
    assert_int_equal(depth, 0);
}

#endif
