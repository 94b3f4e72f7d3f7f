#include "read_again.h"

#define REASON "thread \"io\" in </script>\x1b[2J for 0.3 s"

static void assert_has(const struct fgprof_profile *profile, enum fgprof_format format,
                       const char *part)
{
    char *text = written(profile, format, NULL);
    if (!strstr(text, part))
        assert_string_equal(text, part); /* shows both */
    free(text);
}

static void test_it_is_kept_and_shown(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    assert_null(fgprof_profile_reason(profile));
    assert_int_equal(fgprof_profile_set_reason(profile, REASON), 0);
    for (int i = 0; i < 2; i++) { /* a copy of a copy has the same reason */
        profile = read_again(profile);
        assert_string_equal(fgprof_profile_reason(profile), REASON);
    }
    assert_has(profile, FGPROF_REPORT,
               "\n  reason: thread \"io\" in </script>\\x1b[2J for 0.3 s\n");
    assert_has(profile, FGPROF_REPORT_JSON,
               "\"reason\":\"thread \\\"io\\\" in \\u003c/script>\\\\x1b[2J for 0.3 s\"");
    assert_has(profile, FGPROF_HTML,
               ",\"reason\":\"thread \\\"io\\\" in \\u003c/script>\\\\x1b[2J for 0.3 s\",");
    assert_has(profile, FGPROF_TEXT, "\n# reason: thread \"io\" in </script>\\x1b[2J for 0.3 s\n");
    fgprof_profile_free(profile);
}

static void assert_lacks(const struct fgprof_profile *profile, enum fgprof_format format,
                         const char *part)
{
    char *text = written(profile, format, NULL);
    assert_null(strstr(text, part));
    free(text);
}

static void test_without_a_reason(void **state)
{
    (void)state;
    struct fgprof_profile *profile;
    assert_int_equal(fgprof_profile_read(GOLDEN "/version-1.fgprof", &profile), 0);
    for (int i = 0; i < 3; i++) {
        assert_null(fgprof_profile_reason(profile));
        assert_lacks(profile, FGPROF_REPORT, "reason");
        assert_has(profile, FGPROF_REPORT_JSON, "\"reason\":\"\"");
        assert_lacks(profile, FGPROF_TEXT, "reason");
        profile = read_again(profile);
        /* An empty reason is none after it has been read back. */
        assert_int_equal(fgprof_profile_set_reason(profile, i ? NULL : ""), 0);
        if (!i)
            profile = read_again(profile);
    }
    fgprof_profile_free(profile);
}

static void test_the_host(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    assert_lacks(profile, FGPROF_HTML, "\"host\":");
    profile->host = strdup("db1</script>");
    assert_non_null(profile->host);
    for (int i = 0; i < 2; i++)
        profile = read_again(profile);
    assert_has(profile, FGPROF_HTML, ",\"host\":\"db1\\u003c/script>\",");
    assert_has(profile, FGPROF_REPORT, " on db1</script>; ");
    fgprof_profile_free(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_kept_and_shown),
        cmocka_unit_test(test_without_a_reason),
        cmocka_unit_test(test_the_host),
    };
    return cmocka_run_group_tests_name("reason", tests, NULL, NULL);
}
