#include "unit.h"
#include "base/patience.h"

#define MS_NS UINT64_C(1000000)

/* Looks every so often. Returns when it ends. */
static uint64_t end_of_looks(uint64_t between_ns)
{
    struct patience patience = {.left_ns = 250 * MS_NS, .looked_ns = 7 * MS_NS};
    uint64_t now_ns = patience.looked_ns;
    do
        now_ns += between_ns;
    while (patience_lasts(&patience, now_ns));
    return now_ns - 7 * MS_NS;
}

static void test_it_lasts_for_its_time(void **state)
{
    (void)state;
    assert_int_equal(end_of_looks(MS_NS), 250 * MS_NS);
    assert_int_equal(end_of_looks(10 * MS_NS), 250 * MS_NS);
}

static void test_a_stall_takes_one_step_of_it(void **state)
{
    (void)state;
    struct patience patience = {.left_ns = 250 * MS_NS};
    assert_true(patience_lasts(&patience, 2000 * MS_NS));
    assert_true(patience_lasts(&patience, 2239 * MS_NS));
    assert_int_equal(patience.left_ns, 230 * MS_NS);
    /* It ends all the same where each look comes late. */
    assert_int_equal(end_of_looks(1000 * MS_NS), 25000 * MS_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_lasts_for_its_time),
        cmocka_unit_test(test_a_stall_takes_one_step_of_it),
    };
    return cmocka_run_group_tests_name("patience", tests, NULL, NULL);
}
