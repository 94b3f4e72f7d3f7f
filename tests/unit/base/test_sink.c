#include "unit.h"
#include "output/output.h"
#include "base/sink.h"

#include <errno.h>
#include <signal.h>
#include <zlib.h>

/* Larger than the sink's buffer, and not a multiple of it. */
#define LONG_BYTES 100003u

static void write_numbers(struct sink *sink, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        sink_print(sink, "%u\n", i);
}

static void assert_numbers(const char *text, size_t length, unsigned count)
{
    const char *at = text;
    for (unsigned i = 0; i < count; i++) {
        char *end;
        assert_int_equal(strtoul(at, &end, 10), i);
        assert_int_equal(*end, '\n');
        at = end + 1;
    }
    assert_int_equal((size_t)(at - text), length);
}

static void test_plain_bytes_arrive_in_order(void **state)
{
    (void)state;
    struct sink sink;
    size_t length;
    int fd = file_of_text("");
    sink_open(&sink, fd, false);
    write_numbers(&sink, 20000);
    assert_int_equal(sink_close(&sink), 0);
    char *text = contents_of(fd, &length);
    assert_numbers(text, length, 20000);
    free(text);
    close(fd);
}

static void test_one_write_may_be_larger_than_the_buffer(void **state)
{
    (void)state;
    struct sink sink;
    size_t length;
    int fd = file_of_text("");
    char *bytes = malloc(LONG_BYTES);
    assert_non_null(bytes);
    for (size_t i = 0; i < LONG_BYTES; i++)
        bytes[i] = (char)(i * 7 + i / 256);
    sink_open(&sink, fd, false);
    sink_write(&sink, "<", 1);
    sink_write(&sink, bytes, LONG_BYTES);
    sink_write(&sink, NULL, 0);
    sink_write(&sink, ">", 1);
    assert_int_equal(sink_close(&sink), 0);
    char *text = contents_of(fd, &length);
    assert_int_equal(length, LONG_BYTES + 2);
    assert_int_equal(text[0], '<');
    assert_memory_equal(text + 1, bytes, LONG_BYTES);
    assert_int_equal(text[LONG_BYTES + 1], '>');
    free(text);
    free(bytes);
    close(fd);
}

static void test_writing_begins_where_the_file_stands(void **state)
{
    (void)state;
    struct sink sink;
    int fd = file_of_text("header|");
    lseek(fd, 7, SEEK_SET);
    sink_open(&sink, fd, false);
    sink_print(&sink, "%s-%d", "body", 5);
    assert_int_equal(sink_close(&sink), 0);
    char *text = contents_of(fd, NULL);
    assert_string_equal(text, "header|body-5");
    free(text);
    close(fd);
}

static void test_gzip_is_one_whole_member(void **state)
{
    (void)state;
    struct sink sink;
    size_t length, capacity = 1u << 20;
    int fd = file_of_text("");
    sink_open(&sink, fd, true);
    write_numbers(&sink, 20000);
    assert_int_equal(sink_close(&sink), 0);
    char *packed = contents_of(fd, &length);
    char *text = malloc(capacity);
    assert_non_null(text);
    z_stream stream = {
        .next_in = (unsigned char *)packed,
        .avail_in = (uInt)length,
        .next_out = (unsigned char *)text,
        .avail_out = (uInt)capacity,
    };
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.avail_in, 0);
    assert_numbers(text, stream.total_out, 20000);
    assert_true(length < stream.total_out / 2);
    inflateEnd(&stream);
    free(text);
    free(packed);
    close(fd);
}

static void test_gzip_of_nothing(void **state)
{
    (void)state;
    struct sink sink;
    size_t length;
    char out[8];
    int fd = file_of_text("");
    sink_open(&sink, fd, true);
    assert_int_equal(sink_close(&sink), 0);
    char *packed = contents_of(fd, &length);
    z_stream stream = {.next_in = (unsigned char *)packed,
                       .avail_in = (uInt)length,
                       .next_out = (unsigned char *)out,
                       .avail_out = sizeof out};
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.total_out, 0);
    inflateEnd(&stream);
    free(packed);
    close(fd);
}

static void assert_full(bool is_gzip, unsigned count)
{
    struct sink sink;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        skip();
    sink_open(&sink, fd, is_gzip);
    write_numbers(&sink, count);
    assert_int_equal(sink_close(&sink), -ENOSPC);
    close(fd);
}

static void test_no_space(void **state)
{
    (void)state;
    assert_full(false, 1); /* noticed when it is closed */
    assert_full(false, 20000);
    assert_full(true, 1);
    assert_full(true, 20000);
}

static void test_bad_descriptor(void **state)
{
    (void)state;
    struct sink sink;
    int fd = file_of_text("");
    close(fd);
    sink_open(&sink, fd, false);
    sink_print(&sink, "text");
    assert_int_equal(sink_close(&sink), -EBADF);
    sink_open(&sink, fd, true);
    sink_print(&sink, "text");
    assert_int_equal(sink_close(&sink), -EBADF);
}

static void test_closed_pipe(void **state)
{
    (void)state;
    struct sink sink;
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    sink_open(&sink, ends[1], false);
    write_numbers(&sink, 20000);
    assert_int_equal(sink_close(&sink), -EPIPE);
    close(ends[1]);
}

static void test_first_error_stays(void **state)
{
    (void)state;
    struct sink sink;
    size_t length;
    int fd = file_of_text("");
    sink_open(&sink, fd, false);
    sink.error = -EIO;
    sink_print(&sink, "%d", 1);
    sink_write(&sink, "text", 4);
    assert_int_equal(sink_close(&sink), -EIO);
    free(contents_of(fd, &length));
    assert_int_equal(length, 0);
    close(fd);
}

static void test_profile_write_gives_the_error_of_each_format(void **state)
{
    (void)state;
    static const enum fgprof_format formats[] = {FGPROF_FOLDED, FGPROF_PPROF, FGPROF_TEXT};
    struct fgprof_profile *profile;
    uint32_t stack;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        skip();
    assert_int_equal(profile_new(&profile), 0);
    assert_int_equal(profile_add_stack(profile, NULL, 0, &stack), 0);
    struct profile_sample sample = {.stack = stack, .count = 1};
    assert_int_equal(profile_add_sample(profile, &sample, NULL), 0);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        assert_int_equal(fgprof_profile_write(profile, formats[i], fd), -ENOSPC);
    assert_int_equal(fgprof_profile_write(profile, (enum fgprof_format)99, fd), -EINVAL);
    fgprof_profile_free(profile);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_bytes_arrive_in_order),
        cmocka_unit_test(test_one_write_may_be_larger_than_the_buffer),
        cmocka_unit_test(test_writing_begins_where_the_file_stands),
        cmocka_unit_test(test_gzip_is_one_whole_member),
        cmocka_unit_test(test_gzip_of_nothing),
        cmocka_unit_test(test_no_space),
        cmocka_unit_test(test_bad_descriptor),
        cmocka_unit_test(test_closed_pipe),
        cmocka_unit_test(test_first_error_stays),
        cmocka_unit_test(test_profile_write_gives_the_error_of_each_format),
    };
    return cmocka_run_group_tests_name("sink", tests, NULL, NULL);
}
