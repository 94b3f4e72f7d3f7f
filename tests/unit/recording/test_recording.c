#include "make_profile.h"
#include "recording/recording.h"
#include "recording/columns.h"

#include <errno.h>
#include <stdio.h>
#include <zlib.h>

static const enum fgprof_format formats[] = {FGPROF_FOLDED, FGPROF_PPROF, FGPROF_TEXT, FGPROF_RAW};
#define FORMATS (sizeof formats / sizeof *formats)

static void make_timelines(struct fgprof_profile *profile)
{
    static const uint32_t same_numbers[] = {0, 1, 2, 3, 4, 5, 6};
    struct timeline_thread threads[] = {
        {.tid = 12, .name = make_string(profile, "pool"), .begin_ns = 1000},
        {.tid = 11, .name = make_string(profile, "app"), .begin_ns = 1500, .lost_ns = 77},
    };
    struct timeline_run runs[] = {
        {.time_ns = 300, .sample = 0, .thread = 0},
        {.time_ns = 20, .sample = TIMELINE_NO_SAMPLE, .thread = 0},
        {.time_ns = 5, .sample = 3, .thread = 1},
        {.time_ns = 4, .sample = 0, .thread = 0},
    };
    const struct timeline timeline = {
        .is_wanted = true,
        .start_ns = 1000,
        .threads = threads,
        .thread_count = sizeof threads / sizeof *threads,
        .runs = runs,
        .run_count = sizeof runs / sizeof *runs,
    };
    assert_int_equal(profile_set_timelines(profile, &timeline, same_numbers, &profile->strings), 0);
}

/* A profile with something of everything. */
static struct fgprof_profile *make_all(void)
{
    struct fgprof_profile *profile = make_profile();
    uint32_t app = make_mapping(profile, 0x400000, "/srv/app", "0011ff");
    uint32_t library = make_mapping(profile, 0x7f0000000000, "/usr/lib/libx.so", "");
    struct made_line lines[] = {{"inner", "in.h", 3, true}, {"outer", "a.c", 70000, false}, {0}};
    uint32_t leaf = make_location(profile, 0x400123, app, 0x23, lines);
    uint32_t root = make_function(profile, 0x400456, app, "main", "a.c", 9);
    uint32_t unnamed = make_location(profile, 0x7f0000000010, library, 0, NULL);
    uint32_t kernel, note, jit, function, process;
    bool is_new;
    assert_int_equal(profile_add_process(profile, 11, "app", &process), 0);
    assert_int_equal(profile_add_kernel_function(profile, "ep_poll", &kernel), 0);
    assert_int_equal(profile_add_note(profile, "[truncated: max depth]", &note), 0);
    assert_int_equal(profile_add_function(profile, "run app.js:1", "", "app.js", &function), 0);
    assert_int_equal(
        profile_add_jit_location(profile, 0x99, PROFILE_NO_MAPPING, function, &jit, &is_new), 0);
    struct profile_line line = {.function = function, .line = 12};
    assert_int_equal(profile_set_lines(profile, jit, &line, 1), 0);
    profile->mappings[library].has_bias = true;
    profile->mappings[library].bias = 0x7effffff0000;
    profile->locations[leaf].has_debug_info = true;
    MAKE_SAMPLE(profile, "pool", 12, 3, leaf, root);
    MAKE_SAMPLE(profile, "pool", 13, 40, leaf, root);
    MAKE_SAMPLE(profile, "\xc3\xa4;\n", 14, 500, jit, unnamed, root);
    MAKE_SAMPLE(profile, "app", 11, 1, unnamed, note);
    make_sample(profile, NULL, 0, "app", 11, 2);
    make_state(profile, kernel, THREAD_SLEEPING, "epoll_wait", "ep_poll", 7);
    make_state(profile, kernel, THREAD_RUNNING, "", "", (uint64_t)UINT32_MAX + 6);
    make_timelines(profile);
    assert_int_equal(profile_add_unreadable(profile, "/gone", "damaged"), 0);
    profile->start_time_ns = 1790000000000000000;
    profile->period_ns = 10101010;
    profile->summary.elapsed_ns = 2000000000;
    profile->summary.samples = 553;
    profile->summary.pause_share = 0.0123;
    profile->summary.lacks_files = true;
    profile->summary.error = -ENOMEM;
    profile_finish(profile);
    return profile;
}

static int read_back(const void *bytes, size_t length, struct fgprof_profile **ret_profile)
{
    char path[64];
    int fd = file_of(bytes, length);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int err = fgprof_profile_read(path, ret_profile);
    close(fd);
    return err;
}

/* The caller frees it. */
static unsigned char *inflated(const char *bytes, size_t length, size_t *ret_length)
{
    z_stream stream = {.next_in = (unsigned char *)bytes, .avail_in = (uInt)length};
    enum { ROOM = 1 << 20 };
    unsigned char *out = malloc(ROOM);
    assert_non_null(out);
    stream.next_out = out;
    stream.avail_out = ROOM;
    assert_int_equal(inflateInit2(&stream, 31), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    *ret_length = ROOM - stream.avail_out;
    inflateEnd(&stream);
    return out;
}

static void assert_equal_output(const struct fgprof_profile *one, const struct fgprof_profile *two)
{
    for (size_t i = 0; i < FORMATS; i++)
        assert_written_alike(one, two, formats[i]);
}

static void test_what_is_read_is_written_alike(void **state)
{
    (void)state;
    size_t length;
    struct fgprof_profile *profile = make_all(), *again;
    char *file = written(profile, FGPROF_RAW, &length);
    assert_int_equal(read_back(file, length, &again), 0);
    free(file);
    assert_memory_equal(&again->summary, &profile->summary, sizeof again->summary);
    assert_string_equal(fgprof_profile_unreadable_module(again, 0), "/gone (damaged)");
    assert_null(fgprof_profile_unreadable_module(again, 1));
    for (unsigned flags = 0; flags < 8; flags++) {
        for (int choice = 0; choice < 6; choice++) {
            struct fgprof_profile *both[] = {profile, again};
            for (size_t i = 0; i < 2; i++) {
                assert_int_equal(fgprof_profile_set_folded_flags(both[i], flags), 0);
                assert_int_equal(fgprof_profile_set_kept(both[i], (enum fgprof_kept)(choice / 2)),
                                 0);
                assert_int_equal(
                    fgprof_profile_set_threads(both[i], (enum fgprof_threads)(choice % 2)), 0);
            }
            assert_equal_output(profile, again);
        }
    }
    fgprof_profile_free(profile);
    fgprof_profile_free(again);
}

/* The profile of make_all with waits and thread origins, which the golden file lacks. */
static struct fgprof_profile *make_all_with_waits(void)
{
    static const uint32_t owner = 1;
    struct fgprof_profile *profile = make_all();
    make_wait(profile, 0, &owner, 70);
    make_wait(profile, 0, NULL, 7);
    make_birth(profile, 12, "app/11", "start_pool");
    make_birth(profile, 13, "", "inner");
    return profile;
}

static void test_waits_and_births_are_kept(void **state)
{
    (void)state;
    size_t length;
    struct fgprof_profile *profile = make_all_with_waits(), *again;
    char *file = written(profile, FGPROF_RAW, &length);
    assert_int_equal(read_back(file, length, &again), 0);
    assert_int_equal(again->wait_count, 2);
    assert_memory_equal(again->waits, profile->waits, 2 * sizeof *again->waits);
    assert_int_equal(again->birth_count, 2);
    assert_memory_equal(again->births, profile->births, 2 * sizeof *again->births);
    free(file);
    fgprof_profile_free(again);
    /* A row that refers to itself or to a later one would be a cycle. */
    profile->waits[0].owner_wait_plus_1 = 1;
    file = written(profile, FGPROF_RAW, &length);
    assert_int_equal(read_back(file, length, &again), -EBADMSG);
    free(file);
    fgprof_profile_free(profile);
}

static void test_ticks_are_kept(void **state)
{
    (void)state;
    static const struct profile_tick_run runs[] = {{3, 70, false}, {PROFILE_NO_SAMPLE, 1, true}};
    size_t length;
    struct fgprof_profile *profile = make_all(), *again;
    assert_int_equal(array_reserve(&profile->tick_runs, &profile->tick_run_capacity, 2), 0);
    memcpy(profile->tick_runs, runs, sizeof runs);
    profile->tick_run_count = 2;
    profile->timelines[1].first_tick = 9;
    profile->timelines[1].tick_run_count = 2;
    char *file = written(profile, FGPROF_RAW, &length);
    assert_int_equal(read_back(file, length, &again), 0);
    free(file);
    assert_int_equal(again->tick_run_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(again->tick_runs[i].sample, runs[i].sample);
        assert_int_equal(again->tick_runs[i].ticks, runs[i].ticks);
        assert_int_equal(again->tick_runs[i].is_inferred, runs[i].is_inferred);
    }
    assert_int_equal(again->timelines[1].first_tick, 9);
    assert_int_equal(again->timelines[1].tick_run_count, 2);
    fgprof_profile_free(again);
    /* More runs than there are, and a sample that does not exist. */
    profile->timelines[0].tick_run_count = 1;
    file = written(profile, FGPROF_RAW, &length);
    assert_int_equal(read_back(file, length, &again), -EBADMSG);
    free(file);
    profile->timelines[0].tick_run_count = 0;
    profile->tick_runs[0].sample = (uint32_t)profile->sample_count;
    file = written(profile, FGPROF_RAW, &length);
    assert_int_equal(read_back(file, length, &again), -EBADMSG);
    free(file);
    fgprof_profile_free(profile);
}

static void test_labels_are_kept(void **state)
{
    (void)state;
    size_t length;
    struct fgprof_profile *profile = make_all(), *again;
    MAKE_LABELS(profile, 1, "route", "/a", "tenant", "t");
    MAKE_LABELS(profile, 2, "route", "/b");
    profile->summary.labels_read = 1ull << 40;
    profile->summary.labels_limited = 3;
    profile->summary.ended_are_joined = true;
    profile->summary.processes_joined = 4;
    profile->summary.samples_not_kept = 5;
    char *file = written(profile, FGPROF_RAW, &length);
    assert_int_equal(read_back(file, length, &again), 0);
    free(file);
    assert_memory_equal(&again->summary, &profile->summary, sizeof again->summary);
    assert_int_equal(fgprof_profile_add_root_label(profile, "route"), 0);
    assert_int_equal(fgprof_profile_add_root_label(again, "route"), 0);
    assert_equal_output(profile, again);
    assert_null(sample_label(again, &again->samples[0], 0));
    assert_string_equal(
        strings_get(&again->strings, sample_label(again, &again->samples[1], 1)->value), "t");
    assert_null(sample_label(again, &again->samples[1], 2));
    fgprof_profile_free(again);
    /* Sets that are not within the table, or that overlap. */
    const struct profile_label_set wrong[] = {
        {3, 1}, {0, 4}, {UINT32_MAX, 1}, {1, UINT32_MAX}, {1, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        profile->label_sets[1] = wrong[i];
        bool is_right = wrong[i].first_label == 1; /* overlapping: the total number is right */
        is_right = is_right && wrong[i].label_count == 1;
        file = written(profile, FGPROF_RAW, &length);
        int err = read_back(file, length, &again);
        assert_int_equal(err, is_right ? 0 : -EBADMSG);
        if (!err)
            fgprof_profile_free(again);
        free(file);
    }
    profile->label_sets[1] = (struct profile_label_set){2, 1};
    profile->samples[0].label_set_plus_1 = 3;
    file = written(profile, FGPROF_RAW, &length);
    assert_int_equal(read_back(file, length, &again), -EBADMSG);
    free(file);
    fgprof_profile_free(profile);
}

/* A set with only zeros in the columns that were added later. */
static void test_an_empty_set_of_labels_is_kept(void **state)
{
    (void)state;
    size_t length;
    struct fgprof_profile *profile = make_all(), *again;
    make_labels(profile, 1, (const char *const[]){NULL});
    char *file = written(profile, FGPROF_RAW, &length);
    assert_int_equal(read_back(file, length, &again), 0);
    assert_int_equal(again->label_set_count, 1);
    assert_equal_output(profile, again);
    free(file);
    fgprof_profile_free(profile);
    fgprof_profile_free(again);
}

/* A column that was added later is written only if it has information. */
static void test_the_seed_is_kept(void **state)
{
    (void)state;
    size_t length;
    struct fgprof_profile *profile = make_all(), *again;
    profile->summary.seed = UINT64_MAX - 5;
    char *file = written(profile, FGPROF_RAW, &length);
    assert_int_equal(read_back(file, length, &again), 0);
    assert_true(again->summary.seed == UINT64_MAX - 5);
    free(file);
    fgprof_profile_free(profile);
    fgprof_profile_free(again);
}

static void test_all_is_kept_whatever_is_chosen(void **state)
{
    (void)state;
    size_t length;
    struct fgprof_profile *profile = make_all(), *again;
    assert_int_equal(fgprof_profile_set_kept(profile, FGPROF_KEPT_ON_CPU), 0);
    assert_int_equal(fgprof_profile_set_threads(profile, FGPROF_THREADS_BY_NAME), 0);
    char *file = written(profile, FGPROF_RAW, &length);
    assert_int_equal(read_back(file, length, &again), 0);
    free(file);
    assert_int_equal(again->kept, FGPROF_KEPT_ALL);
    fgprof_profile_free(profile);
    profile = make_all();
    assert_equal_output(profile, again);
    fgprof_profile_free(profile);
    fgprof_profile_free(again);
}

static void test_an_empty_profile(void **state)
{
    (void)state;
    size_t length;
    struct fgprof_profile *profile = make_profile(), *again;
    char *file = written(profile, FGPROF_RAW, &length);
    assert_int_equal(read_back(file, length, &again), 0);
    assert_equal_output(profile, again);
    free(file);
    fgprof_profile_free(profile);
    fgprof_profile_free(again);
}

/* A committed file of version 1: later programs read it, and write it identically until the format
 * changes. Inflated contents are compared, as zlib may compress differently. */
static void test_the_golden_file(void **state)
{
    (void)state;
    size_t length, golden_length, file_length;
    struct fgprof_profile *profile = make_all(), *golden;
    int fd = open(GOLDEN "/version-1.fgprof", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    char *golden_file = contents_of(fd, &golden_length);
    close(fd);
    assert_int_equal(fgprof_profile_read(GOLDEN "/version-1.fgprof", &golden), 0);
    assert_equal_output(profile, golden);
    char *file = written(profile, FGPROF_RAW, &file_length);
    unsigned char *one = inflated(golden_file, golden_length, &golden_length);
    unsigned char *two = inflated(file, file_length, &length);
    assert_int_equal(length, golden_length);
    assert_memory_equal(one, two, length);
    free(one);
    free(two);
    free(file);
    free(golden_file);
    fgprof_profile_free(profile);
    fgprof_profile_free(golden);
}

/* Sections that were added later: older programs skip them, and older files lack them. */
static void test_what_was_added_later(void **state)
{
    (void)state;
    size_t length;
    struct fgprof_profile *profile = make_all(), *again;
    profile->summary.observations_put_off = 70000;
    profile->summary.kernel_samples = 80000;
    profile->summary.kernel_refusal = 13;
    profile->summary.threads_without_event = 90000;
    profile->summary.threads_unsampled = 3;
    profile->summary.threads_waits_unseen = 4;
    profile->summary.event_refusal = 24;
    profile->summary.waits_refusal = 28;
    profile->summary.has_kernel_samples = profile->summary.has_switch_record = true;
    profile->summary.has_thread_events = true;
    profile->summary.kernel_names_refusal = 13;
    profile->summary.filter_refusal = 1;
    profile->summary.hidden_returns = 5;
    profile->summary.wakes_lost = 6;
    profile->summary.switches_unrecorded = 7;
    profile->summary.sees_user_only = 1;
    profile->samples[3].never_moved = true;
    make_elapsed(profile);
    char *file = written(profile, FGPROF_RAW, &length);
    assert_int_equal(read_back(file, length, &again), 0);
    assert_int_equal(again->summary.observations_put_off, 70000);
    assert_int_equal(again->summary.kernel_samples, 80000);
    assert_int_equal(again->summary.kernel_refusal, 13);
    assert_int_equal(again->summary.switches_unrecorded, 7);
    assert_int_equal(again->summary.threads_without_event, 90000);
    assert_int_equal(again->summary.waits_refusal, 28);
    for (size_t i = 0; i < again->sample_count; i++)
        assert_int_equal(again->samples[i].never_moved, i == 3);
    assert_memory_equal(&again->summary, &profile->summary, sizeof again->summary);
    assert_true(again->has_elapsed);
    assert_equal_output(profile, again);
    assert_int_equal(fgprof_profile_set_folded_flags(profile, FGPROF_FOLDED_ELAPSED), 0);
    assert_int_equal(fgprof_profile_set_folded_flags(again, FGPROF_FOLDED_ELAPSED), 0);
    assert_equal_output(profile, again);
    assert_int_equal(again->parallel_count, 2);
    assert_int_equal(again->parallel_ns[1], 10000000);
    free(file);
    fgprof_profile_free(profile);
    fgprof_profile_free(again);
    assert_int_equal(fgprof_profile_read(GOLDEN "/version-1.fgprof", &again), 0);
    assert_int_equal(again->summary.observations_put_off, 0);
    assert_false(again->has_elapsed);
    assert_int_equal(again->parallel_count, 0);
    fgprof_profile_free(again);
}

/* A recording without contention counts says how often threads were seen waiting. */
static void test_sleeps_are_kept(void **state)
{
    (void)state;
    size_t length;
    struct fgprof_profile *profile = make_all_with_waits(), *again;
    for (int i = 0; i < 2; i++) {
        char *file = written(profile, FGPROF_RAW, &length);
        assert_int_equal(read_back(file, length, &again), 0);
        free(file);
        assert_int_equal(again->has_sleeps, i);
        assert_int_equal(again->sample_count, profile->sample_count);
        for (size_t j = 0; j < again->sample_count; j++) {
            assert_int_equal(again->samples[j].sleeps, i ? 5 * j : 0);
            assert_int_equal(sample_contentions(again, &again->samples[j]),
                             i ? 5 * j : profile->samples[j].count);
        }
        fgprof_profile_free(again);
        profile->has_sleeps = true;
        for (size_t j = 0; j < profile->sample_count; j++)
            profile->samples[j].sleeps = 5 * j;
    }
    fgprof_profile_free(profile);
}

static void test_a_cut_file(void **state)
{
    (void)state;
    size_t length;
    struct fgprof_profile *profile = make_all(), *again;
    char *file = written(profile, FGPROF_RAW, &length);
    for (size_t cut = 0; cut < length; cut++)
        assert_int_equal(read_back(file, cut, &again), -ENODATA);
    file[length] = 1; /* replaces the NUL from contents_of */
    assert_int_equal(read_back(file, length + 1, &again), -EBADMSG);
    free(file);
    fgprof_profile_free(profile);
}

/* Flips every bit of the file: the result is an error, or the same profile where a bit has no
 * meaning (the time in gzip's header, the padding of the last byte). */
static void test_a_damaged_file(void **state)
{
    (void)state;
    size_t length, unharmed = 0;
    struct fgprof_profile *profile = make_all(), *again;
    char *file = written(profile, FGPROF_RAW, &length);
    for (size_t bit = 0; bit < length * 8; bit++) {
        file[bit / 8] ^= (char)(1 << bit % 8);
        int err = read_back(file, length, &again);
        if (err) {
            assert_true(err == -EBADMSG || err == -ENODATA || err == -EILSEQ);
        } else {
            assert_equal_output(profile, again);
            fgprof_profile_free(again);
            unharmed++;
        }
        file[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_in_range(unharmed, 1, 64);
    free(file);
    fgprof_profile_free(profile);
}

/* The same without gzip and its checksum, as an attacker could do: whatever can be read can be
 * written. */
static void damage_contents(unsigned char *bytes, size_t length)
{
    struct fgprof_profile *again;
    size_t refused = 0;
    for (size_t i = 0; i < length; i++) {
        for (unsigned value = 0; value < 256; value += value < 4 ? 1 : 63) {
            unsigned char before = bytes[i];
            bytes[i] = (unsigned char)value;
            int err = recording_parse(bytes, length, &again);
            bytes[i] = before;
            refused += err != 0;
            if (err)
                continue;
            for (size_t j = 0; j < FORMATS; j++)
                free(written(again, formats[j], NULL));
            fgprof_profile_free(again);
        }
    }
    assert_in_range(refused, length, SIZE_MAX);
}

static void test_damaged_contents(void **state)
{
    (void)state;
    size_t length;
    struct fgprof_profile *profile = make_all(), *waits = make_all_with_waits(), *again;
    char *file = written(waits, FGPROF_RAW, &length);
    unsigned char *bytes = inflated(file, length, &length);
    damage_contents(bytes, length);
    free(bytes);
    free(file);
    fgprof_profile_free(waits);
    file = written(profile, FGPROF_RAW, &length);
    bytes = inflated(file, length, &length);
    damage_contents(bytes, length);
    for (size_t cut = 0; cut < length; cut++) {
        unsigned char *part = malloc(cut + !cut);
        memcpy(part, bytes, cut);
        assert_int_equal(recording_parse(part, cut, &again), cut < 12 ? -EILSEQ : -EBADMSG);
        free(part);
    }
    free(bytes);
    free(file);
    fgprof_profile_free(profile);
}

static void test_other_versions_and_sections(void **state)
{
    (void)state;
    size_t length;
    struct fgprof_profile *profile = make_all(), *again;
    char *file = written(profile, FGPROF_RAW, &length);
    unsigned char *bytes = inflated(file, length, &length);
    bytes[8] = FGPROF_RECORDING_VERSION + 1;
    assert_int_equal(recording_parse(bytes, length, &again), -EPROTONOSUPPORT);
    bytes[8] = 0;
    assert_int_equal(recording_parse(bytes, length, &again), -EBADMSG);
    bytes[8] = 1;
    /* Sections of later programs: one with a small number, and one with a large number. */
    static const unsigned char unknown[] = {127, 3, 1, 2, 3, 0xff, 0xff, 0x7f, 1, 9};
    memcpy(bytes + length, unknown, sizeof unknown);
    assert_int_equal(recording_parse(bytes, length + sizeof unknown, &again), 0);
    assert_equal_output(profile, again);
    fgprof_profile_free(again);
    bytes[length + 1] = 100; /* longer than the file */
    assert_int_equal(recording_parse(bytes, length + sizeof unknown, &again), -EBADMSG);
    bytes[length] = 35; /* a section that is there already */
    bytes[length + 1] = 3;
    assert_int_equal(recording_parse(bytes, length + sizeof unknown, &again), -EBADMSG);
    free(bytes);
    free(file);
    fgprof_profile_free(profile);
}

static void test_what_is_no_recording(void **state)
{
    (void)state;
    size_t length;
    struct fgprof_profile *profile = make_all(), *again;
    for (size_t i = 0; i < FORMATS - 1; i++) {
        char *file = written(profile, formats[i], &length);
        assert_int_equal(read_back(file, length, &again), -EILSEQ);
        free(file);
    }
    fgprof_profile_free(profile);
    assert_int_equal(read_back("", 0, &again), -ENODATA);
    assert_int_equal(fgprof_profile_read("/dev/null", &again), -ENOEXEC);
    assert_int_equal(fgprof_profile_read("/", &again), -ENOEXEC);
    assert_int_equal(fgprof_profile_read("/nonexistent/file", &again), -ENOENT);
}

/* A file is read in parts of 64 KiB. The boundary between parts is moved to every position in the
 * compressed data and the checksum, and to the end, with gzip's extra field (RFC 1952, 2.3.1.1),
 * which has no meaning. */
static void test_a_border_of_parts_anywhere(void **state)
{
    (void)state;
    enum { HEAD = 10, FLAGS = 3, HAS_EXTRA = 4, EXTRA_HEAD = 2, PART = 65536 };
    static unsigned char padded[2 * PART + 2];
    size_t length;
    struct fgprof_profile *profile = make_all(), *again;
    char *file = written(profile, FGPROF_RAW, &length);
    assert_in_range(length, HEAD + 8, PART / 2);
    assert_int_equal(file[FLAGS], 0);
    for (size_t border = HEAD + EXTRA_HEAD + 1; border <= length; border++) {
        size_t extra = PART - border - EXTRA_HEAD, whole = length + EXTRA_HEAD + extra;
        memset(padded, 0, sizeof padded);
        memcpy(padded, file, HEAD);
        padded[FLAGS] = HAS_EXTRA;
        padded[HEAD] = (unsigned char)extra;
        padded[HEAD + 1] = (unsigned char)(extra >> 8);
        memcpy(padded + HEAD + EXTRA_HEAD + extra, file + HEAD, length - HEAD);
        assert_int_equal(read_back(padded, whole, &again), 0);
        if (border == length || border == length - 4)
            assert_equal_output(profile, again);
        fgprof_profile_free(again);
        assert_int_equal(read_back(padded, PART, &again), border == length ? 0 : -ENODATA);
        if (border == length)
            fgprof_profile_free(again);
        assert_int_equal(read_back(padded, whole + 1, &again), -EBADMSG);
        padded[whole - 1] ^= 1; /* in the checksum's length */
        assert_int_equal(read_back(padded, whole, &again), -EBADMSG);
    }
    free(file);
    fgprof_profile_free(profile);
}

/* 300 MB of zeros, compressed to 300 KB, after a valid beginning. */
static void test_a_file_that_grows_too_much(void **state)
{
    (void)state;
    enum { PART = 1 << 20, PARTS = 300 };
    struct fgprof_profile *again;
    size_t length;
    static unsigned char zeros[PART];
    int fd = file_of_text("");
    struct sink *sink = malloc(sizeof *sink);
    assert_non_null(sink);
    sink_open(sink, fd, true);
    sink_write(sink, RECORDING_MAGIC "\1\0\0\0", 12);
    for (size_t i = 0; i < PARTS; i++)
        sink_write(sink, zeros, sizeof zeros);
    assert_int_equal(sink_close(sink), 0);
    char *file = contents_of(fd, &length);
    assert_int_equal(read_back(file, length, &again), -EFBIG);
    free(file);
    free(sink);
    close(fd);
}

static size_t pretended_bytes; /* which the strings are said to take in addition */

size_t __real_strings_bytes(const struct strings *strings);
size_t __wrap_strings_bytes(const struct strings *strings);
size_t __wrap_strings_bytes(const struct strings *strings)
{
    return __real_strings_bytes(strings) + pretended_bytes;
}

static void test_strings_count_for_the_limit_of_memory(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_all(), *again;
    size_t length;
    char *file = written(profile, FGPROF_RAW, &length);
    pretended_bytes = (size_t)1 << 30;
    assert_int_equal(read_back(file, length, &again), -EFBIG);
    pretended_bytes = 0;
    assert_int_equal(read_back(file, length, &again), 0);
    fgprof_profile_free(again);
    free(file);
    fgprof_profile_free(profile);
}

int main(int argc, char **argv)
{
    if (argc > 1) { /* writes the golden file, for a new version of the format */
        struct fgprof_profile *profile = make_all();
        int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        int err = fgprof_profile_write(profile, FGPROF_RAW, fd);
        fgprof_profile_free(profile);
        return err || close(fd);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_read_is_written_alike),
        cmocka_unit_test(test_waits_and_births_are_kept),
        cmocka_unit_test(test_ticks_are_kept),
        cmocka_unit_test(test_labels_are_kept),
        cmocka_unit_test(test_an_empty_set_of_labels_is_kept),
        cmocka_unit_test(test_the_seed_is_kept),
        cmocka_unit_test(test_all_is_kept_whatever_is_chosen),
        cmocka_unit_test(test_an_empty_profile),
        cmocka_unit_test(test_the_golden_file),
        cmocka_unit_test(test_what_was_added_later),
        cmocka_unit_test(test_sleeps_are_kept),
        cmocka_unit_test(test_a_cut_file),
        cmocka_unit_test(test_a_damaged_file),
        cmocka_unit_test(test_damaged_contents),
        cmocka_unit_test(test_other_versions_and_sections),
        cmocka_unit_test(test_what_is_no_recording),
        cmocka_unit_test(test_a_border_of_parts_anywhere),
        cmocka_unit_test(test_a_file_that_grows_too_much),
        cmocka_unit_test(test_strings_count_for_the_limit_of_memory),
    };
    return cmocka_run_group_tests_name("recording", tests, NULL, NULL);
}
