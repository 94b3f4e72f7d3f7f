#include "make_objects.h"
#include "base/buffer.h"
#include "recording/columns.h"
#include "recording/recording.h"

#include <errno.h>
#include <stdio.h>
#include <zlib.h>

/* The profile in the golden file. */
static struct fgprof_profile *make_golden(void)
{
    struct fgprof_profile *profile = make_heap();
    uint32_t locations[] = {MADE_CACHE, MADE_PARSE, MADE_MAIN};
    make_objects(profile, locations, 3, 100000, 12, 2);
    MAKE_LABELS(profile, 4, "route", "/a");
    profile->summary.allocator_is_own = true;
    profile->objects.made_lost = 3;
    profile->objects.gone_lost = 4;
    profile->objects.resident_peak = 50 << 20;
    profile->objects.heap_arena = 30 << 20;
    profile->objects.heap_mmap = 8 << 20;
    profile->objects.heap_used = 29 << 20;
    profile->objects.heap_free = 1 << 20;
    assert_int_equal(fgprof_profile_set_command(profile, "fgprof-c run --kind heap -- /srv/app"),
                     0);
    return profile;
}

/* The same program at a later time. */
static struct fgprof_profile *make_later(void)
{
    struct fgprof_profile *profile = make_golden();
    uint32_t begin = make_function(profile, 0x400700, 0, "begin", "b.c", 5);
    MAKE_OBJECTS(profile, 516, 60, 5, MADE_PARSE, MADE_MAIN);
    MAKE_OBJECTS(profile, 4096, 2, 5, MADE_CACHE, MADE_MAIN);
    MAKE_OBJECTS(profile, 1 << 20, 6, 1, begin, MADE_MAIN);
    profile->summary.elapsed_ns += 10000000000;
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

static void assert_equal_profiles(const struct fgprof_profile *one,
                                  const struct fgprof_profile *two)
{
    static const enum fgprof_format formats[] = {FGPROF_FOLDED, FGPROF_PPROF, FGPROF_TEXT,
                                                 FGPROF_RAW};
    assert_int_equal(one->kind, two->kind);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        assert_written_alike(one, two, formats[i]);
}

static void test_each_kind_is_kept(void **state)
{
    (void)state;
    struct fgprof_profile *profiles[] = {make_golden(), make_golden(), make_growth(),
                                         make_threads(), make_custom("open files")};
    assert_int_equal(fgprof_profile_set_kind(profiles[1], FGPROF_KIND_ALLOCS), 0);
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++) {
        struct fgprof_profile *again;
        size_t length;
        char *file = written(profiles[i], FGPROF_RAW, &length);
        assert_int_equal(read_back(file, length, &again), 0);
        assert_equal_profiles(profiles[i], again);
        free(file);
        fgprof_profile_free(profiles[i]);
        fgprof_profile_free(again);
    }
}

/* A negative count, as in differences. */
static void test_negative_counts_are_kept(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_kind(FGPROF_KIND_HEAP), *again;
    size_t length;
    MAKE_OBJECTS(profile, 10, (uint64_t)-3, 5, MADE_MAIN);
    char *file = written(profile, FGPROF_RAW, &length);
    assert_int_equal(read_back(file, length, &again), 0);
    assert_equal_profiles(profile, again);
    free(file);
    fgprof_profile_free(profile);
    fgprof_profile_free(again);
}

static void test_the_golden_files(void **state)
{
    (void)state;
    struct fgprof_profile *made[] = {make_golden(), make_later()};
    static const char *const paths[] = {GOLDEN "/heap.fgprof", GOLDEN "/heap-later.fgprof"};
    for (size_t i = 0; i < 2; i++) {
        struct fgprof_profile *golden;
        assert_int_equal(fgprof_profile_read(paths[i], &golden), 0);
        assert_equal_profiles(made[i], golden);
        assert_int_equal(golden->objects.heap_free, 1 << 20);
        assert_true(golden->summary.allocator_is_own);
        fgprof_profile_free(golden);
        fgprof_profile_free(made[i]);
    }
}

/* The header and sections of a file, inflated. */
static unsigned char *inflated(struct fgprof_profile *profile, size_t *ret_length)
{
    size_t length;
    char *file = written(profile, FGPROF_RAW, &length);
    z_stream stream = {.next_in = (unsigned char *)file, .avail_in = (uInt)length};
    unsigned char *out = malloc(1 << 20);
    assert_non_null(out);
    stream.next_out = out;
    stream.avail_out = 1 << 20;
    assert_int_equal(inflateInit2(&stream, 31), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    *ret_length = (1 << 20) - stream.avail_out;
    inflateEnd(&stream);
    free(file);
    return out;
}

/* Older programs would read objects as samples without time, so recordings of objects have another
 * version. The version for time stays the same. */
static void test_the_version_tells_objects(void **state)
{
    (void)state;
    struct fgprof_profile *profiles[] = {make_golden(), make_profile()}, *again;
    for (uint32_t i = 0; i < 2; i++) {
        size_t length;
        unsigned char *file = inflated(profiles[i], &length);
        assert_int_equal(file[RECORDING_MAGIC_BYTES], i ? 1 : 2);
        assert_int_equal(recording_parse(file, length, &again), 0);
        fgprof_profile_free(again);
        /* The other version does not match the contents, and there is no third one. */
        file[RECORDING_MAGIC_BYTES] = i ? 2 : 1;
        assert_int_equal(recording_parse(file, length, &again), -EBADMSG);
        file[RECORDING_MAGIC_BYTES] = 0;
        assert_int_equal(recording_parse(file, length, &again), -EBADMSG);
        file[RECORDING_MAGIC_BYTES] = 3;
        assert_int_equal(recording_parse(file, length, &again), -EPROTONOSUPPORT);
        free(file);
        fgprof_profile_free(profiles[i]);
    }
}

static void put_number(struct buffer *file, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        buffer_write(file, &(uint8_t){(uint8_t)(number | 0x80)}, 1);
    buffer_write(file, &(uint8_t){(uint8_t)number}, 1);
}

/* Columns with one byte per row, whose rows in memory are many times as large. */
static void test_rows_that_memory_has_no_room_for(void **state)
{
    (void)state;
    enum { ROWS = 16 << 20 };
    struct fgprof_profile *profile = make_profile(), *again;
    size_t length;
    unsigned char *head = inflated(profile, &length);
    char *zeros = calloc(1, ROWS);
    struct buffer file = {0};
    assert_true(ROWS * profile_row_bytes(TABLE_SAMPLES) > (size_t)1 << 30);
    buffer_write(&file, head, RECORDING_HEAD_BYTES);
    buffer_write(&file, (const char[]){COLUMN_STRINGS, 1, 0}, 3); /* the only string is "" */
    for (size_t i = 0; i < profile_column_count(); i++) {
        const struct profile_column *column = profile_column(i);
        size_t rows = column->table == TABLE_SAMPLES     ? ROWS
                      : column->table == TABLE_RECORDING ? 1
                                                         : 0;
        if (profile_column_is_optional(column))
            continue;
        put_number(&file, column->number);
        put_number(&file, rows);
        buffer_write(&file, zeros, rows);
    }
    assert_int_equal(file.error, 0);
    assert_int_equal(recording_parse((unsigned char *)file.bytes, file.length, &again), -EFBIG);
    buffer_free(&file);
    free(zeros);
    free(head);
    fgprof_profile_free(profile);
}

static void test_a_kind_that_is_not_kept(void **state)
{
    (void)state;
    static const struct {
        int kind;
        bool is_kept;
    } rows[] = {{FGPROF_KIND_CPU, false},        {FGPROF_KIND_BLAME, false},
                {FGPROF_KIND_HEAP, true},        {FGPROF_KIND_CUSTOM, true},
                {FGPROF_KIND_CUSTOM + 1, false}, {-1, false}};
    struct fgprof_profile *profile = make_profile();
    for (size_t i = 0; i < profile_column_count(); i++) {
        const struct profile_column *column = profile_column(i);
        for (size_t j = 0; column->kind == COLUMN_KIND && j < sizeof rows / sizeof *rows; j++)
            assert_int_equal(profile_set_cell(profile, column, 0, (uint64_t)(int64_t)rows[j].kind),
                             rows[j].is_kept);
    }
    fgprof_profile_free(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_kind_is_kept),
        cmocka_unit_test(test_negative_counts_are_kept),
        cmocka_unit_test(test_the_golden_files),
        cmocka_unit_test(test_the_version_tells_objects),
        cmocka_unit_test(test_rows_that_memory_has_no_room_for),
        cmocka_unit_test(test_a_kind_that_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
