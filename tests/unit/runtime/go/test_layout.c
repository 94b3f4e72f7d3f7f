#include "runtime/go/layout.h"
#include "unit.h"

static void test_versions(void **state)
{
    (void)state;
    for (unsigned minor = 18; minor <= 27; minor++) {
        const struct go_layout *layout = go_layout_of(minor);
        assert_non_null(layout);
        assert_int_equal(layout->minor, minor);
        assert_int_equal(layout->g_parent == GO_NOWHERE, minor < 21);
        assert_true(layout->g_labels > layout->g_start && layout->g_labels < 512);
    }
    assert_null(go_layout_of(17));
    assert_null(go_layout_of(28));
}

/* The numbers in the sources of these versions. */
static void test_reasons(void **state)
{
    (void)state;
    assert_string_equal(go_wait_reason(19, 0), "");
    assert_string_equal(go_wait_reason(19, 9), "select");
    assert_string_equal(go_wait_reason(19, 19), "sleep");
    assert_string_equal(go_wait_reason(19, 26), "debug call");
    assert_string_equal(go_wait_reason(20, 21), "sync.Mutex.Lock");
    assert_string_equal(go_wait_reason(24, 24), "sync.WaitGroup.Wait");
    assert_string_equal(go_wait_reason(26, 13), "semacquire");
    assert_string_equal(go_wait_reason(26, 19), "chan receive");
    assert_string_equal(go_wait_reason(27, 46), "cleanup wait");
    assert_string_equal(go_wait_reason(27, 255), "unknown wait reason");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
