#include "make_profile.h"

#include <inttypes.h>
#include <stdio.h>

static int set_up(void **state)
{
    *state = make_profile();
    return 0;
}

static int tear_down(void **state)
{
    fgprof_profile_free(*state);
    return 0;
}

static void assert_text(const struct fgprof_profile *profile, const char *expected)
{
    assert_written(profile, FGPROF_TEXT, expected);
}

static void test_one_stack(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t app = make_mapping(profile, 0x400000, "/opt/app", "");
    uint32_t leaf = make_function(profile, 0x401010, app, "read", "/src/io.c", 12);
    uint32_t root = make_function(profile, 0x401120, app, "main", "/src/main.c", 7);
    MAKE_SAMPLE(profile, "app", 0, 42, leaf, root);
    /* pprof subtracts one from each address of the first line; the rows have the exact addresses.
     */
    assert_text(profile, "wallclock profile: total 42\n"
                         "42 @ 0x401011 0x401121\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"app\"}\n"
                         "#\t0x401010\tread+0x10\t/src/io.c:12\n"
                         "#\t0x401120\tmain+0x20\t/src/main.c:7\n"
                         "\n");
}

static void test_nothing_sampled(void **state)
{
    assert_text(*state, "wallclock profile: total 0\n");
}

static void test_columns_are_aligned_by_tabs(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t app = make_mapping(profile, 0x400000, "/opt/app", "");
    uint32_t locations[] = {
        make_function(profile, 0x7f0000001002, app, "a", "/a.c", 1),                  /* 5 wide */
        make_function(profile, 0x10, app, "abcdefghijk", "/b.c", 2),                  /* 16 */
        make_function(profile, 0x401003, app, "abcd", "/c.c", 3),                     /* 8 */
        make_function(profile, 0x401004, app, "\xc3\xa4\xc3\xb6\xc3\xbc", "/d.c", 4), /* 7 */
    };
    make_sample(profile, locations, 4, "app", 0, 1);
    assert_text(profile, "wallclock profile: total 1\n"
                         "1 @ 0x7f0000001003 0x11 0x401004 0x401005\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"app\"}\n"
                         "#\t0x7f0000001002\ta+0x2\t\t\t/a.c:1\n"
                         "#\t0x10\t\tabcdefghijk+0x10\t/b.c:2\n"
                         "#\t0x401003\tabcd+0x3\t\t/c.c:3\n"
                         "#\t0x401004\t\xc3\xa4\xc3\xb6\xc3\xbc+0x4\t\t\t/d.c:4\n"
                         "\n");
}

/* A row that has no cell after a column ends it: the rows below are aligned on their own. */
static void test_rows_without_a_file_part_the_columns(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t app = make_mapping(profile, 0x400000, "/opt/app", "");
    uint32_t locations[] = {
        make_function(profile, 0x401001, app, "short", "/a.c", 1),
        make_function(profile, 0x401002, app, "a_name_without_a_file_that_is_long", "", 0),
        make_function(profile, 0x401003, app, "a_longer_name", "/b.c", 2),
        make_function(profile, 0x401004, app, "b", "/c.c", 3),
    };
    make_sample(profile, locations, 4, "app", 0, 1);
    assert_text(profile, "wallclock profile: total 1\n"
                         "1 @ 0x401002 0x401003 0x401004 0x401005\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"app\"}\n"
                         "#\t0x401001\tshort+0x1\t/a.c:1\n"
                         "#\t0x401002\ta_name_without_a_file_that_is_long+0x2\n"
                         "#\t0x401003\ta_longer_name+0x3\t/b.c:2\n"
                         "#\t0x401004\tb+0x4\t\t\t/c.c:3\n"
                         "\n");
}

/* C's %#x writes 0 as "0", Go's as "0x0"; pprof rejects a line whose address lacks 0x. */
static void test_zero_is_written_as_any_number(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t entry = make_function(profile, 0x401000, PROFILE_NO_MAPPING, "entry", "", 0);
    uint32_t last = make_location(profile, UINT64_MAX, PROFILE_NO_MAPPING, 0, NULL);
    uint32_t first = make_location(profile, 0, PROFILE_NO_MAPPING, 0, NULL);
    MAKE_SAMPLE(profile, "app", 0, 3, entry);
    MAKE_SAMPLE(profile, "app", 0, 2, last);
    MAKE_SAMPLE(profile, "app", 0, 1, first);
    assert_text(profile, "wallclock profile: total 6\n"
                         "3 @ 0x401001\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"app\"}\n"
                         "#\t0x401000\tentry+0x0\n"
                         "\n"
                         "2 @ 0x0\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"app\"}\n"
                         "#\t0xffffffffffffffff\t[unknown]\n"
                         "\n"
                         "1 @ 0x1\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"app\"}\n"
                         "#\t0x0\t[unknown]\n"
                         "\n");
}

static void test_most_counted_come_first(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t few = make_function(profile, 0x1010, PROFILE_NO_MAPPING, "few", "", 0);
    uint32_t many = make_function(profile, 0x2010, PROFILE_NO_MAPPING, "many", "", 0);
    uint32_t some = make_function(profile, 0x3010, PROFILE_NO_MAPPING, "some", "", 0);
    MAKE_SAMPLE(profile, "app", 0, 9, few);
    MAKE_SAMPLE(profile, "app", 0, 5000000000, many);
    MAKE_SAMPLE(profile, "app", 0, 10, some);
    /* Less than a tick: not written. */
    MAKE_SAMPLE(profile, "other", 0, 0, some);
    assert_text(profile, "wallclock profile: total 5000000019\n"
                         "5000000000 @ 0x2011\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"app\"}\n"
                         "#\t0x2010\tmany+0x10\n"
                         "\n"
                         "10 @ 0x3011\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"app\"}\n"
                         "#\t0x3010\tsome+0x10\n"
                         "\n"
                         "9 @ 0x1011\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"app\"}\n"
                         "#\t0x1010\tfew+0x10\n"
                         "\n");
}

static void test_ties_are_sorted_by_key(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t a = make_function(profile, 0x2010, PROFILE_NO_MAPPING, "a", "", 0);
    uint32_t b = make_function(profile, 0x10010, PROFILE_NO_MAPPING, "b", "", 0);
    /* The key is text: 0x10011 comes before 0x2011; a shorter stack before a longer one, since a
     * line feed comes before a space; then the labels. */
    MAKE_SAMPLE(profile, "x", 0, 1, a);
    MAKE_SAMPLE(profile, "x", 0, 1, b, a);
    MAKE_SAMPLE(profile, "x", 0, 1, b);
    MAKE_SAMPLE(profile, "w", 0, 1, a);
    assert_text(profile, "wallclock profile: total 4\n"
                         "1 @ 0x10011\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"x\"}\n"
                         "#\t0x10010\tb+0x10\n"
                         "\n"
                         "1 @ 0x10011 0x2011\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"x\"}\n"
                         "#\t0x10010\tb+0x10\n"
                         "#\t0x2010\ta+0x10\n"
                         "\n"
                         "1 @ 0x2011\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"w\"}\n"
                         "#\t0x2010\ta+0x10\n"
                         "\n"
                         "1 @ 0x2011\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"x\"}\n"
                         "#\t0x2010\ta+0x10\n"
                         "\n");
}

static void test_labels(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t leaf = make_function(profile, 0x1010, PROFILE_NO_MAPPING, "f", "", 0);
    MAKE_SAMPLE(profile, "worker", 4711, 3, leaf);
    MAKE_SAMPLE(profile, "a\"b\\c", 0, 2, leaf);
    MAKE_SAMPLE(profile, "x\ny", 0, 1, leaf);
    assert_text(profile,
                "wallclock profile: total 6\n"
                "3 @ 0x1011\n"
                "# labels: {\"state\":\"unknown\", \"thread\":\"worker\", \"tid\":\"4711\"}\n"
                "#\t0x1010\tf+0x10\n"
                "\n"
                "2 @ 0x1011\n"
                "# labels: {\"state\":\"unknown\", \"thread\":\"a\\\"b\\\\c\"}\n"
                "#\t0x1010\tf+0x10\n"
                "\n"
                "1 @ 0x1011\n"
                "# labels: {\"state\":\"unknown\", \"thread\":\"x\\x0ay\"}\n"
                "#\t0x1010\tf+0x10\n"
                "\n");
}

/* Sorted by key, as in Go. */
static void test_labels_that_threads_gave_themselves(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t location = make_function(profile, 0xf, PROFILE_NO_MAPPING, "f", "", 0);
    MAKE_SAMPLE(profile, "app", 0, 1, location);
    MAKE_LABELS(profile, 0, "a\"b", "c\\", "tenant", "x", "zone", "\xc3\xa4");
    assert_text(profile, "wallclock profile: total 1\n"
                         "1 @ 0x10\n"
                         "# labels: {\"a\\\"b\":\"c\\\\\", \"state\":\"unknown\", "
                         "\"tenant\":\"x\", \"thread\":\"app\", \"zone\":\"\xc3\xa4\"}\n"
                         "#\t0xf\tf+0xf\n\n");
}

static void test_labels_of_the_state(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t leaf = make_function(profile, 0x1010, PROFILE_NO_MAPPING, "f", "", 0);
    make_state(profile, leaf, THREAD_RUNNING, "", "", 3);
    make_state(profile, leaf, THREAD_SLEEPING, "futex", "", 2);
    make_state(profile, leaf, THREAD_UNINTERRUPTIBLE, "vfork", "kernel_clone", 1);
    assert_text(profile, "wallclock profile: total 6\n"
                         "3 @ 0x1011\n"
                         "# labels: {\"state\":\"running\", \"thread\":\"app\"}\n"
                         "#\t0x1010\tf+0x10\n"
                         "\n"
                         "2 @ 0x1011\n"
                         "# labels: {\"state\":\"sleeping\", \"syscall\":\"futex\", "
                         "\"thread\":\"app\"}\n"
                         "#\t0x1010\tf+0x10\n"
                         "\n"
                         "1 @ 0x1011\n"
                         "# labels: {\"state\":\"uninterruptible\", \"syscall\":\"vfork\", "
                         "\"thread\":\"app\", \"wait_channel\":\"kernel_clone\"}\n"
                         "#\t0x1010\tf+0x10\n"
                         "\n");
}

static void test_labels_of_a_wait(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t leaf = make_function(profile, 0x1010, PROFILE_NO_MAPPING, "f", "", 0);
    uint32_t owner = make_function(profile, 0x2020, PROFILE_NO_MAPPING, "g", "", 0);
    make_wait(profile, leaf, NULL, 2);
    make_wait(profile, leaf, &owner, 1);
    assert_text(profile, "wallclock profile: total 3\n"
                         "3 @ 0x1011\n"
                         "# labels: {\"owner\":\"boss\", \"resource\":\"mutex g_lock\", "
                         "\"state\":\"sleeping\", \"syscall\":\"futex\", "
                         "\"thread\":\"app\", \"wait\":\"mutex\"}\n"
                         "#\t0x1010\tf+0x10\n"
                         "\n");
}

static void test_only_what_is_kept_is_written(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t leaf = make_function(profile, 0x1010, PROFILE_NO_MAPPING, "f", "", 0);
    make_state(profile, leaf, THREAD_RUNNING, "", "", 3);
    make_state(profile, leaf, THREAD_STOPPED, "", "", 2);
    assert_int_equal(fgprof_profile_set_kept(profile, FGPROF_KEPT_ON_CPU), 0);
    assert_text(profile, "wallclock profile: total 3\n"
                         "3 @ 0x1011\n"
                         "# labels: {\"state\":\"running\", \"thread\":\"app\"}\n"
                         "#\t0x1010\tf+0x10\n"
                         "\n");
    assert_int_equal(fgprof_profile_set_kept(profile, FGPROF_KEPT_OFF_CPU), 0);
    assert_text(profile, "wallclock profile: total 2\n"
                         "2 @ 0x1011\n"
                         "# labels: {\"state\":\"stopped\", \"thread\":\"app\"}\n"
                         "#\t0x1010\tf+0x10\n"
                         "\n");
}

/* A backslash in the name itself is escaped, whatever follows it. */
static void test_labels_with_a_backslash_before_x(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t leaf = make_function(profile, 0x1010, PROFILE_NO_MAPPING, "f", "", 0);
    MAKE_SAMPLE(profile, "C:\\xyz", 0, 1, leaf);
    assert_text(profile, "wallclock profile: total 1\n"
                         "1 @ 0x1011\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"C:\\\\xyz\"}\n"
                         "#\t0x1010\tf+0x10\n"
                         "\n");
}

static void test_inlined_calls_are_rows_of_their_own(void **state)
{
    struct fgprof_profile *profile = *state;
    struct made_line lines[] = {{"inner", "/in.h", 3, true}, {"outer", "/a.c", 40, false}, {0}};
    uint32_t leaf = make_location(profile, 0x401010, PROFILE_NO_MAPPING, 0x20, lines);
    MAKE_SAMPLE(profile, "app", 0, 5, leaf);
    assert_text(profile, "wallclock profile: total 5\n"
                         "5 @ 0x401011\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"app\"}\n"
                         "#\t0x401010\tinner+0x20\t/in.h:3\n"
                         "#\t0x401010\touter+0x20\t/a.c:40\n"
                         "\n");
}

static void test_frames_without_a_name_and_notes(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t libc = make_mapping(profile, 0x7f0000000000, "/usr/lib/libc.so.6", "");
    uint32_t note;
    uint32_t other = make_mapping(profile, 0x7f0000200000, "/usr/lib/data", "");
    uint32_t leaf = make_location(profile, 0x7f0000001000, libc, 0, NULL);
    uint32_t in_other = make_location(profile, 0x7f0000200010, other, 0, NULL);
    uint32_t nowhere = make_location(profile, 0x99, PROFILE_NO_MAPPING, 0, NULL);
    assert_int_equal(profile_add_note(profile, "[truncated: max depth]", &note), 0);
    profile->mappings[libc].has_bias = true;
    profile->mappings[libc].bias = 0x7effffff0000;
    MAKE_SAMPLE(profile, "app", 0, 5, leaf, in_other, nowhere, note);
    /* A note's address is 0 after pprof has subtracted one. */
    assert_text(profile, "wallclock profile: total 5\n"
                         "5 @ 0x7f0000001001 0x7f0000200011 0x9a 0x1\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"app\"}\n"
                         "#\t0x7f0000001000\tlibc.so.6+0x11000\n"
                         "#\t0x7f0000200010\t[data]\n"
                         "#\t0x99\t\t[unknown]\n"
                         "#\t0x1\t\t[truncated: max depth]\n"
                         "\n");
}

/* A line that starts with "---" would end the profile for pprof, and a line feed would begin a
 * line. */
static void test_names_can_not_break_lines(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t leaf = make_function(profile, 0x1010, PROFILE_NO_MAPPING, "f\n--- Memory map: ---",
                                  "/a\n\tb.c", 3);
    MAKE_SAMPLE(profile, "t\n---", 0, 1, leaf);
    assert_text(profile, "wallclock profile: total 1\n"
                         "1 @ 0x1011\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"t\\x0a---\"}\n"
                         "#\t0x1010\tf\\x0a--- Memory map: ---+0x10\t/a\\x0a\\x09b.c:3\n"
                         "\n");
}

/* pprof's scanner rejects a line of 64 KiB. */
static void test_deep_stacks_stay_below_the_longest_line(void **state)
{
    struct fgprof_profile *profile = *state;
    enum { DEPTH = 10000 };
    static uint32_t locations[DEPTH];
    for (uint32_t i = 0; i < DEPTH; i++)
        locations[i] =
            make_function(profile, 0x7f0000000000 + i * 16, PROFILE_NO_MAPPING, "f", "", 0);
    make_sample(profile, locations, DEPTH, "app", 0, 1);
    char *text = written(profile, FGPROF_TEXT, NULL);
    size_t longest = 0, rows = 0;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        longest = (size_t)(end - line) > longest ? (size_t)(end - line) : longest;
        rows += strncmp(line, "#\t", 2) == 0;
    }
    assert_in_range(longest, 60000, 65535);
    assert_int_equal(rows, DEPTH);
    free(text);
}

/* A long name must not exceed that limit either. */
static void test_long_names_stay_below_the_longest_line(void **state)
{
    struct fgprof_profile *profile = *state;
    char *name = malloc(100001);
    assert_non_null(name);
    memset(name, 'n', 100000);
    name[100000] = '\0';
    uint32_t leaf = make_function(profile, 0x1010, PROFILE_NO_MAPPING, name, "/a.c", 1);
    MAKE_SAMPLE(profile, "app", 0, 1, leaf);
    free(name);
    char *text = written(profile, FGPROF_TEXT, NULL);
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
        assert_in_range(end - line, 0, 65535);
    free(text);
}

static char *repeated(const char *text, size_t times)
{
    size_t bytes = strlen(text);
    char *all = malloc(bytes * times + 1);
    assert_non_null(all);
    for (size_t i = 0; i < times; i++)
        memcpy(all + i * bytes, text, bytes);
    all[bytes * times] = '\0';
    return all;
}

/* Nor must a label, whatever the recording contains: the worst text of each kind. */
static void test_long_labels_stay_below_the_longest_line(void **state)
{
    struct fgprof_profile *profile = *state;
    static const char *const texts[] = {"n", "\"", "\x01", "\xc3\xa4", "\x80"};
    uint32_t leaf = make_function(profile, 0x1010, PROFILE_NO_MAPPING, "f", "", 0);
    uint32_t other_process;
    assert_int_equal(profile_add_process(profile, 69, "other", &other_process), 0);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *text = repeated(texts[i], 70000);
        struct profile_sample sample = {
            .thread_name = make_string(profile, text),
            .syscall_name = make_string(profile, text),
            .wait_channel = make_string(profile, text),
            .tid = UINT32_MAX,
            .state = THREAD_UNINTERRUPTIBLE,
            .count = 1 + i,
        };
        assert_int_equal(profile_add_process(profile, UINT32_MAX, text, &sample.process), 0);
        assert_int_equal(profile_add_stack(profile, &leaf, 1, &sample.stack), 0);
        assert_int_equal(profile_add_sample(profile, &sample, NULL), 0);
        free(text);
    }
    char *text = written(profile, FGPROF_TEXT, NULL);
    size_t lines = 0;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, lines++)
        assert_in_range(end - line, 0, 65535);
    assert_int_equal(lines, 1 + 5 * 4);
    free(text);
}

/* A label of the maximum length is kept whole; a longer one is cut between characters. */
static void test_labels_are_cut_at_their_bound(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t leaf = make_function(profile, 0x1010, PROFILE_NO_MAPPING, "f", "", 0);
    char *whole = repeated("\xc3\xa4", 500), *part = repeated("\xc3\xa4", 499);
    char *cut_name, *expected;
    assert_true(asprintf(&cut_name, "n%s", whole) > 0);
    MAKE_SAMPLE(profile, whole, 0, 2, leaf);
    MAKE_SAMPLE(profile, cut_name, 0, 1, leaf);
    assert_true(asprintf(&expected,
                         "wallclock profile: total 3\n"
                         "2 @ 0x1011\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"%s\"}\n"
                         "#\t0x1010\tf+0x10\n"
                         "\n"
                         "1 @ 0x1011\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"n%s...\"}\n"
                         "#\t0x1010\tf+0x10\n"
                         "\n",
                         whole, part) > 0);
    assert_text(profile, expected);
    free(whole);
    free(part);
    free(cut_name);
    free(expected);
}

#define WITH_PROFILE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static void test_functions_of_the_kernel(void **state)
{
    struct fgprof_profile *profile = *state;
    uint32_t wait;
    uint32_t leaf = make_location(profile, 0x1010, PROFILE_NO_MAPPING, 0x10,
                                  (struct made_line[]){{"read", "", 0, false}, {0}});
    assert_int_equal(profile_add_kernel_function(profile, "pipe_read", &wait), 0);
    MAKE_SAMPLE(profile, "app", 0, 5, wait, leaf);
    assert_text(profile, "wallclock profile: total 5\n"
                         "5 @ 0x1 0x1011\n"
                         "# labels: {\"state\":\"unknown\", \"thread\":\"app\"}\n"
                         "#\t0x1\tpipe_read\n"
                         "#\t0x1010\tread+0x10\n"
                         "\n");
}

static void test_processes(void **state)
{
    struct fgprof_profile *profile = *state;
    make_two_processes(profile, make_function(profile, 1, PROFILE_NO_MAPPING, "f", "", 0));
    size_t length;
    char *text = written(profile, FGPROF_TEXT, &length);
    assert_non_null(strstr(text, "2 @ 0x2\n# labels: {\"pid\":\"70\", \"process\":\"make\", "
                                 "\"state\":\"unknown\", \"thread\":\"app\"}\n"));
    assert_non_null(strstr(text, "3 @ 0x2\n# labels: {\"pid\":\"71\", \"process\":\"a;b c\", "
                                 "\"state\":\"unknown\", \"thread\":\"app\"}\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PROFILE(test_processes),
        WITH_PROFILE(test_one_stack),
        WITH_PROFILE(test_nothing_sampled),
        WITH_PROFILE(test_columns_are_aligned_by_tabs),
        WITH_PROFILE(test_rows_without_a_file_part_the_columns),
        WITH_PROFILE(test_zero_is_written_as_any_number),
        WITH_PROFILE(test_most_counted_come_first),
        WITH_PROFILE(test_ties_are_sorted_by_key),
        WITH_PROFILE(test_labels),
        WITH_PROFILE(test_labels_of_the_state),
        WITH_PROFILE(test_labels_that_threads_gave_themselves),
        WITH_PROFILE(test_labels_of_a_wait),
        WITH_PROFILE(test_only_what_is_kept_is_written),
        WITH_PROFILE(test_labels_with_a_backslash_before_x),
        WITH_PROFILE(test_inlined_calls_are_rows_of_their_own),
        WITH_PROFILE(test_frames_without_a_name_and_notes),
        WITH_PROFILE(test_names_can_not_break_lines),
        WITH_PROFILE(test_deep_stacks_stay_below_the_longest_line),
        WITH_PROFILE(test_long_names_stay_below_the_longest_line),
        WITH_PROFILE(test_long_labels_stay_below_the_longest_line),
        WITH_PROFILE(test_labels_are_cut_at_their_bound),
        WITH_PROFILE(test_functions_of_the_kernel),
    };
    return cmocka_run_group_tests_name("output_text", tests, NULL, NULL);
}
