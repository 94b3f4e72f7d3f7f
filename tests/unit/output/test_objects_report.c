#include "make_objects.h"

#include <errno.h>
#include <stdio.h>

#define HEAD(kind, rest)                                                                           \
    "fgprof-c report: " kind " of app/11; 60.00 s\n"                                               \
    "  recorded by: fgprof-c run\n" rest

#define SAMPLED                                                                                    \
    "  estimated from 111 sampled allocations, one per 512.0 KiB on average; stacks: 0.0 % cut, "  \
    "0.0 % with an unnamed frame\n"

#define IN_USE                                                                                     \
    "\nIn use, by stack:\n"                                                                        \
    "      IN USE    SHARE    OBJECTS    AVERAGE   ALLOCATED  PATH\n"                              \
    "    30.0 MiB   95.2 %      60994      516 B    50.0 MiB  main > parse\n"                      \
    "     1.5 MiB    4.8 %        386    4.0 KiB    10.8 MiB  main > fill_cache\n"

#define FUNCTIONS                                                                                  \
    "\nIn use, by function, and with what it calls:\n"                                             \
    "         OWN       TOTAL  FUNCTION\n"                                                         \
    "    30.0 MiB    30.0 MiB  parse\n"                                                            \
    "     1.5 MiB     1.5 MiB  fill_cache\n"

#define ALLOCATED                                                                                  \
    "\nAllocated, by stack:\n"                                                                     \
    "   ALLOCATED    SHARE    OBJECTS    AVERAGE      IN USE  PATH\n"                              \
    "    50.0 MiB   82.3 %     101656      516 B    30.0 MiB  main > parse\n"                      \
    "    10.8 MiB   17.7 %        395   27.9 KiB     1.5 MiB  main > fill_cache\n"

static void assert_report(struct fgprof_profile *profile, const char *expected)
{
    assert_int_equal(fgprof_profile_set_command(profile, "fgprof-c run"), 0);
    assert_written(profile, FGPROF_REPORT, expected);
    fgprof_profile_free(profile);
}

static void test_heap(void **state)
{
    (void)state;
    assert_report(make_heap(),
                  HEAD("heap", "  in use: 31.5 MiB in 61379 objects; allocated in all: 60.8 MiB in "
                               "102051\n" SAMPLED) IN_USE FUNCTIONS ALLOCATED);
    struct fgprof_profile *allocs = make_heap();
    assert_int_equal(fgprof_profile_set_kind(allocs, FGPROF_KIND_ALLOCS), 0);
    assert_report(allocs,
                  HEAD("allocs", "  in use: 31.5 MiB in 61379 objects; allocated in all: 60.8 MiB "
                                 "in 102051\n" SAMPLED) ALLOCATED IN_USE FUNCTIONS);
}

static void test_processes_that_have_ended(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_heap();
    profile->processes[0].pid = 0;
    char *text = written(profile, FGPROF_REPORT, NULL);
    assert_non_null(strstr(text, "fgprof-c report: heap of app; 60.00 s\n"));
    free(text);
    fgprof_profile_free(profile);
}

static void test_all_that_is_known(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_kind(FGPROF_KIND_HEAP);
    uint32_t unnamed = make_location(profile, 0x400999, 0, 0, NULL), note;
    assert_int_equal(profile_add_note(profile, "[truncated: max depth]", &note), 0);
    MAKE_OBJECTS(profile, 10, 3, 0, unnamed, MADE_MAIN);
    MAKE_OBJECTS(profile, 10, 1, 0, MADE_PARSE, note);
    profile->objects.gone_lost = 7;
    profile->objects.heap_arena = 5 << 20;
    profile->objects.heap_mmap = 1 << 20;
    profile->objects.heap_used = 3 << 20;
    profile->objects.heap_free = 2 << 20;
    profile->objects.resident_peak = 9 << 20;
    assert_int_equal(fgprof_profile_set_reason(profile, "SIGUSR1"), 0);
    assert_report(
        profile,
        HEAD("heap",
             "  reason: SIGUSR1\n"
             "  in use: 40 B in 4 objects; allocated in all: 40 B in 4\n"
             "  all 4 allocations were recorded; stacks: 25.0 % cut, 75.0 % with an unnamed "
             "frame\n"
             "  recording fell behind: 0 objects are missing here, and 7 that are gone still "
             "count as in use\n"
             "  malloc has 6.0 MiB from the kernel: 4.0 MiB in use, 2.0 MiB free\n"
             "  resident memory peaked at 9.0 MiB\n"
             "\nIn use, by stack:\n"
             "      IN USE    SHARE    OBJECTS    AVERAGE   ALLOCATED  PATH\n"
             "        30 B   75.0 %          3       10 B        30 B  main > [app]\n"
             "        10 B   25.0 %          1       10 B        10 B  [truncated: max depth] > "
             "parse\n"
             "\nIn use, by function, and with what it calls:\n"
             "         OWN       TOTAL  FUNCTION\n"
             "        30 B        30 B  [app]\n"
             "        10 B        10 B  parse\n"
             "\nAllocated, by stack:\n"
             "   ALLOCATED    SHARE    OBJECTS    AVERAGE      IN USE  PATH\n"
             "        30 B   75.0 %          3       10 B        30 B  main > [app]\n"
             "        10 B   25.0 %          1       10 B        10 B  [truncated: max depth] > "
             "parse\n"));
}

static void test_other_kinds(void **state)
{
    (void)state;
    assert_report(make_growth(), HEAD("growth", "  resident: 4.0 MiB; page faults: 751\n"
                                                "  stacks: 0.0 % cut, 0.0 % with an unnamed frame\n"
                                                "\nResident, by stack:\n"
                                                "    RESIDENT    SHARE    FAULTS  PATH\n"
                                                "     2.0 MiB   50.6 %         1  main > "
                                                "fill_cache\n"
                                                "     2.0 MiB   49.4 %       700  main > parse\n"));
    assert_report(make_threads(),
                  HEAD("threadcreate",
                       "  3 threads were made\n"
                       "  stacks: 0.0 % cut, 0.0 % with an unnamed frame\n"
                       "\nMade, by stack:\n"
                       "     THREADS    SHARE  NAME                      PATH\n"
                       "           2   66.7 %  pool                      main > parse\n"
                       "           1   33.3 %  log                       main > fill_cache\n"));
    assert_report(make_custom("sockets"),
                  HEAD("sockets", "  total: 5\n"
                                  "  stacks: 0.0 % cut, 0.0 % with an unnamed frame\n"
                                  "\nAdded, by stack:\n"
                                  "       COUNT    SHARE  PATH\n"
                                  "           5  100.0 %  main > parse\n"));
}

/* Of more stacks than are shown, the largest are shown. */
static void test_the_most_of_many(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_kind(FGPROF_KIND_HEAP);
    for (uint32_t i = 0; i < 14; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        uint32_t leaf = make_function(profile, 0x401000 + i, 0, name, "", 0);
        MAKE_OBJECTS(profile, 1024, 1 + (i * 5) % 14, 0, leaf, MADE_MAIN);
    }
    char *text = written(profile, FGPROF_REPORT, NULL);
    const char *at = strstr(text, "In use, by stack:\n");
    for (uint32_t amount = 14; amount > 4; amount--) {
        char line[40];
        snprintf(line, sizeof line, "%u.0 KiB", amount);
        at = strstr(at, line);
        assert_non_null(at);
    }
    at = strchr(at, '\n');
    assert_int_equal(strncmp(at, "\n  and 4 more\n", 14), 0);
    free(text);
    fgprof_profile_free(profile);
}

static struct fgprof_profile *make_after(void)
{
    struct fgprof_profile *profile = make_heap();
    profile->summary.elapsed_ns += 10000000000;
    MAKE_OBJECTS(profile, 516, 50, 10, MADE_PARSE, MADE_MAIN);
    MAKE_OBJECTS(profile, 4096, 0, 3, MADE_CACHE, MADE_MAIN);
    MAKE_OBJECTS(profile, 65536, 2, 2, MADE_PARSE, MADE_CACHE, MADE_MAIN);
    return profile;
}

static char *difference(const struct fgprof_profile *before, const struct fgprof_profile *after,
                        enum fgprof_format format)
{
    int fd = file_of_text("");
    assert_int_equal(fgprof_profile_write_difference(before, after, format, false, fd), 0);
    char *text = contents_of(fd, NULL);
    close(fd);
    return text;
}

static void test_a_difference(void **state)
{
    (void)state;
    struct fgprof_profile *before = make_heap(), *after = make_after();
    char *text = difference(before, after, FGPROF_REPORT);
    assert_string_equal(
        text, "fgprof-c report: heap of app/11, what changed in 10.00 s\n"
              "  recorded by: not known\n"
              "  in use: +18.5 MiB in +40277 objects; allocated meanwhile: 26.1 MiB in 50845\n"
              "  estimated from sampled allocations, one per 512.0 KiB on average\n"
              "\nGrown, by stack:\n"
              "      IN USE    OBJECTS    AVERAGE   ALLOCATED  PATH\n"
              "   +20.0 MiB     +40662      516 B    25.0 MiB  main > parse\n"
              "\nShrunk, by stack:\n"
              "      IN USE    OBJECTS    AVERAGE   ALLOCATED  PATH\n"
              "    -1.5 MiB       -386    4.0 KiB         0 B  main > fill_cache\n"
              "\nAllocated, by stack:\n"
              "   ALLOCATED    OBJECTS    AVERAGE      IN USE  PATH\n"
              "    25.0 MiB      50828      516 B   +20.0 MiB  main > parse\n"
              "     1.1 MiB         17   64.0 KiB        +0 B  main > fill_cache > parse\n");
    free(text);
    text = difference(before, after, FGPROF_REPORT_JSON);
    assert_non_null(strstr(text, "\"kind\":\"heap\",\"is_difference\":true"));
    assert_non_null(strstr(text, "\"least\":{\"left_out\":0,\"stacks\":[{\"objects_made\":0,"
                                 "\"bytes_made\":0,\"objects_in_use\":-386,"
                                 "\"bytes_in_use\":-1579016,"));
    assert_null(strstr(text, "\"seen"));
    free(text);
    /* In the opposite direction. */
    text = difference(after, before, FGPROF_REPORT);
    assert_non_null(strstr(text, "\n  in use: -18.5 MiB in -40277 objects;"));
    assert_null(strstr(text, "1844674407"));
    free(text);
    fgprof_profile_free(before);
    fgprof_profile_free(after);
}

static void test_differences_of_two_kinds(void **state)
{
    (void)state;
    struct fgprof_profile *profiles[] = {make_heap(), make_growth(), make_profile(),
                                         make_custom("a"), make_custom("b")};
    enum fgprof_format formats[] = {FGPROF_FOLDED, FGPROF_HTML, FGPROF_REPORT, FGPROF_REPORT_JSON};
    int fd = file_of_text("");
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < 5; j++) {
            for (size_t k = 0; k < 4; k++) {
                bool is_possible = i == j && (k < 3 || i != 2);
                assert_int_equal(fgprof_profile_write_difference(profiles[i], profiles[j],
                                                                 formats[k], false, fd),
                                 is_possible ? 0 : -EINVAL);
            }
        }
    }
    close(fd);
    for (size_t i = 0; i < 5; i++)
        fgprof_profile_free(profiles[i]);
}

static void test_nothing(void **state)
{
    (void)state;
    assert_report(make_kind(FGPROF_KIND_GROWTH),
                  HEAD("growth", "  resident: 0 B; page faults: 0\n"
                                 "  stacks: 0.0 % cut, 0.0 % with an unnamed frame\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heap),
        cmocka_unit_test(test_processes_that_have_ended),
        cmocka_unit_test(test_all_that_is_known),
        cmocka_unit_test(test_other_kinds),
        cmocka_unit_test(test_the_most_of_many),
        cmocka_unit_test(test_a_difference),
        cmocka_unit_test(test_differences_of_two_kinds),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
