#include "read_again.h"
#include "recording/recording.h"
#include "recording/columns.h"

#include <errno.h>
#include <stdio.h>
#include <zlib.h>

#define RECORDED "fgprof-c run -o x.fgprof -- sh -c '</script>\n\x1b[2J'"
#define CONVERTED "fgprof-c convert x.fgprof"

static void test_the_command_is_kept(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    assert_string_equal(profile_recorded_by(profile), "");
    assert_int_equal(fgprof_profile_set_command(profile, RECORDED), 0);
    assert_string_equal(profile_recorded_by(profile), RECORDED);
    for (int i = 0; i < 3; i++) { /* a copy of a copy was recorded by the same command */
        profile = read_again(profile);
        assert_string_equal(profile_recorded_by(profile), RECORDED);
        assert_int_equal(fgprof_profile_set_command(profile, CONVERTED), 0);
    }
    char *page = written(profile, FGPROF_HTML, NULL);
    assert_non_null(strstr(page, "\"command\":\"" CONVERTED "\",\"recorded_by\":\"fgprof-c run -o "
                                 "x.fgprof -- sh -c '\\u003c/script>\\\\x0a\\\\x1b[2J'\","));
    free(page);
    fgprof_profile_free(profile);
}

/* A command that converts an older file did not record it. */
static void test_a_file_without_it(void **state)
{
    (void)state;
    struct fgprof_profile *profile;
    assert_int_equal(fgprof_profile_read(GOLDEN "/version-1.fgprof", &profile), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fgprof_profile_set_command(profile, CONVERTED), 0);
        assert_string_equal(profile_recorded_by(profile), "");
        profile = read_again(profile);
    }
    fgprof_profile_free(profile);
}

static size_t inflate_into(unsigned char *out, size_t room, char *packed, size_t length)
{
    z_stream stream = {.next_in = (unsigned char *)packed,
                       .avail_in = (uInt)length,
                       .next_out = out,
                       .avail_out = (uInt)room};
    assert_int_equal(inflateInit2(&stream, 31), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    inflateEnd(&stream);
    return stream.total_out;
}

static void test_damaged_commands(void **state)
{
    (void)state;
    static const struct {
        unsigned char bytes[16];
        size_t length;
        int result;
    } cases[] = {
        {{COLUMN_RECORDED_BY, 3, 'a', ' ', 0xff}, 5, 0}, /* name_append escapes other bytes */
        {{COLUMN_RECORDED_BY, 0}, 2, 0},
        {{COLUMN_RECORDED_BY, 3, 'a', '\0', 'b'}, 5, -EBADMSG},
        {{COLUMN_RECORDED_BY, 4, 'a', 'b', 'c'}, 5, -EBADMSG},
        {{COLUMN_RECORDED_BY, 1, 'a', COLUMN_RECORDED_BY, 1, 'a'}, 6, -EBADMSG},
        {{COLUMN_RECORDED_BY, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
         11,
         -EBADMSG},
    };
    static unsigned char file[1 << 16];
    struct fgprof_profile *profile = make_profile(), *again;
    size_t length;
    char *packed = written(profile, FGPROF_RAW, &length);
    length = inflate_into(file, sizeof file - sizeof cases->bytes, packed, length);
    free(packed);
    fgprof_profile_free(profile);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(file + length, cases[i].bytes, sizeof cases[i].bytes);
        int err = recording_parse(file, length + cases[i].length, &again);
        assert_int_equal(err, cases[i].result);
        if (err)
            continue;
        free(written(again, FGPROF_HTML, NULL));
        free(written(again, FGPROF_PPROF, NULL));
        fgprof_profile_free(again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_command_is_kept),
        cmocka_unit_test(test_a_file_without_it),
        cmocka_unit_test(test_damaged_commands),
    };
    return cmocka_run_group_tests_name("recorded_by", tests, NULL, NULL);
}
