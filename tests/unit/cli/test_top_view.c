/* The order of top's rows. Views are compared row by row, so every field that distinguishes rows
 * counts, each before the next one. */
#include "unit.h"
#include "cli/top/view.h"

typedef int compare_fn(const void *, const void *);

/* `rows`: in ascending order, all different. */
static void assert_ascending(const void *rows, size_t count, size_t bytes, compare_fn *compare)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            int order = compare((const char *)rows + i * bytes, (const char *)rows + j * bytes);
            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
}
#define ASSERT_ASCENDING(rows, compare)                                                            \
    assert_ascending(rows, sizeof(rows) / sizeof *(rows), sizeof *(rows), compare)

static void test_functions(void **state)
{
    (void)state;
    static const struct fgprof_function rows[] = {
        {.name = NULL, .module = "z"}, {.name = "", .module = "a"},  {.name = "a", .module = "b"},
        {.name = "a", .module = "c"},  {.name = "b", .module = "a"},
    };
    ASSERT_ASCENDING(rows, top_compare_functions);
}

static void test_activities(void **state)
{
    (void)state;
    static const struct fgprof_activity rows[] = {
        {1, FGPROF_STATE_WAITING, "z", "z", "z", "z", 0, "z"},
        {2, FGPROF_STATE_RUNNABLE, "a", "b", NULL, "z", 0, "z"},
        {2, FGPROF_STATE_RUNNABLE, "a", "b", "a", "b", 0, "b"},
        {2, FGPROF_STATE_RUNNABLE, "a", "b", "a", "b", 0, "c"},
        {2, FGPROF_STATE_RUNNABLE, "a", "b", "a", "c", 0, "a"},
        {2, FGPROF_STATE_RUNNABLE, "a", "b", "b", "a", 0, "a"},
        {2, FGPROF_STATE_RUNNABLE, "a", "c", "a", "a", 0, "a"},
        {2, FGPROF_STATE_WAITING, "a", "a", "a", "a", 0, "a"},
        {2, FGPROF_STATE_RUNNING, "b", "a", "a", "a", 0, "a"},
        {3, FGPROF_STATE_RUNNING, "a", "a", "a", "a", 0, "a"},
    };
    ASSERT_ASCENDING(rows, top_compare_activities);
}

static void test_waits(void **state)
{
    (void)state;
    static const struct fgprof_wait rows[] = {
        {1, 9, "z", "z", "z", 0, "z"},  {2, 9, "z", "a", NULL, 0, "z"},
        {2, 9, "z", "a", "a", 0, NULL}, {2, 1, "a", "a", "a", 0, "a"},
        {2, 1, "b", "a", "a", 0, "a"},  {2, 2, "a", "a", "a", 0, "a"},
        {2, 1, "a", "a", "a", 0, "b"},  {2, 1, "a", "a", "b", 0, "a"},
        {2, 1, "a", "b", "a", 0, "a"},  {3, 1, "a", "a", "a", 0, "a"},
    };
    ASSERT_ASCENDING(rows, top_compare_waits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_activities),
        cmocka_unit_test(test_waits),
    };
    return cmocka_run_group_tests_name("top view", tests, NULL, NULL);
}
