/* Messages for wrong options. */
#include "cli/options/options.h"
#include "unit.h"

#include <getopt.h>
#include <stdio.h>

/* Checks what parsing this option prints. */
static void assert_said(const char *command_name, const char *word, const char *expected)
{
    char name[16], option[32], *argv[] = {name, option, NULL}, *said;
    size_t said_bytes;
    struct cli_options options;
    FILE *real_stderr = stderr;
    snprintf(name, sizeof name, "%s", command_name);
    snprintf(option, sizeof option, "%s", word);
    stderr = open_memstream(&said, &said_bytes);
    assert_non_null(stderr);
    optind = 0; /* makes getopt_long start anew */
    enum parse_result result = options_parse(2, argv, COMMAND_ATTACH, &options);
    fclose(stderr);
    stderr = real_stderr;
    assert_int_equal(result, PARSE_WRONG);
    assert_string_equal(said, expected);
    free(said);
}

static void test_an_option_that_is_not_known(void **state)
{
    (void)state;
    assert_said("attach", "--duraton=3",
                "fgprof-c: attach has no option '--duraton=3': did you mean --duration?\n");
    assert_said("attach", "--xyzzy",
                "fgprof-c: attach has no option '--xyzzy': see fgprof-c attach --help\n");
}

static void test_several_options_that_begin_alike(void **state)
{
    (void)state;
    assert_said("attach", "--max=3",
                "fgprof-c: '--max=3' is ambiguous: give --max-pause or --max-depth\n");
    assert_said("attach", "--no",
                "fgprof-c: '--no' is ambiguous: give --no-idle, --no-goroutines or "
                "--no-demangle\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_option_that_is_not_known),
        cmocka_unit_test(test_several_options_that_begin_alike),
    };
    return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}
