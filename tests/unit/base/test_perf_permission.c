#include "unit.h"

#include "base/perf_permission.h"

#include <errno.h>
#include <linux/capability.h>

#define BIT(capability) ((uint64_t)1 << (capability))

static const struct kernel_version linux_4_19 = {4, 19}, linux_5_7 = {5, 7}, linux_5_8 = {5, 8};

static const char *events(struct kernel_version kernel, long paranoid, uint64_t capabilities,
                          int error)
{
    const struct process_rights rights = {kernel, paranoid, capabilities, false};
    return perf_permission_needed(&rights, error);
}

static const char *bpf(struct kernel_version kernel, uint64_t capabilities)
{
    const struct process_rights rights = {kernel, 2, capabilities, false};
    return bpf_permission_needed(&rights);
}

static void test_events(void **state)
{
    (void)state;
    assert_string_equal(events(linux_5_8, 2, 0, EACCES), "CAP_PERFMON");
    assert_string_equal(events(linux_5_8, -1, 0, EPERM), "CAP_PERFMON");
    assert_string_equal(events(linux_5_7, 2, 0, EACCES), "CAP_SYS_ADMIN");
    assert_string_equal(events(linux_4_19, 3, 0, EACCES), "CAP_SYS_ADMIN");
    assert_null(events(linux_4_19, 3, BIT(CAP_SYS_ADMIN), EACCES));
    assert_null(events(linux_5_8, 2, BIT(CAP_PERFMON), EACCES));
    assert_null(events(linux_5_8, 4, BIT(CAP_SYS_ADMIN), EACCES));
}

static void test_events_of_a_kernel_that_is_closed(void **state)
{
    (void)state;
    for (long paranoid = 3; paranoid < 5; paranoid++) {
        assert_string_equal(events(linux_5_8, paranoid, 0, EACCES),
                            "CAP_PERFMON (if that is not enough, CAP_SYS_ADMIN)");
        assert_string_equal(events(linux_5_8, paranoid, BIT(CAP_PERFMON), EACCES),
                            "CAP_SYS_ADMIN (CAP_PERFMON is not enough on this kernel)");
        /* EPERM does not come from the kernel itself. */
        assert_string_equal(events(linux_5_8, paranoid, 0, EPERM), "CAP_PERFMON");
        assert_null(events(linux_5_8, paranoid, BIT(CAP_PERFMON), EPERM));
    }
}

static int paranoid(struct kernel_version kernel, uint64_t capabilities, bool is_in_namespace)
{
    const struct process_rights rights = {kernel, 3, capabilities, is_in_namespace};
    return perf_permission_paranoid(&rights);
}

static void test_paranoid(void **state)
{
    (void)state;
    assert_int_equal(paranoid(linux_5_8, 0, false), 1);
    assert_int_equal(paranoid(linux_5_8, BIT(CAP_PERFMON), false), 2);
    assert_int_equal(paranoid(linux_5_8, BIT(CAP_PERFMON), true), 1);
    assert_int_equal(paranoid(linux_5_7, BIT(CAP_PERFMON), false), 1);
}

static void test_bpf(void **state)
{
    (void)state;
    assert_string_equal(bpf(linux_5_8, 0), "CAP_BPF and CAP_PERFMON");
    assert_string_equal(bpf(linux_5_8, BIT(CAP_PERFMON)), "CAP_BPF");
    assert_string_equal(bpf(linux_5_8, BIT(CAP_BPF)), "CAP_PERFMON");
    assert_null(bpf(linux_5_8, BIT(CAP_BPF) | BIT(CAP_PERFMON)));
    assert_null(bpf(linux_5_8, BIT(CAP_SYS_ADMIN)));
    assert_string_equal(bpf(linux_5_7, 0), "CAP_SYS_ADMIN");
    assert_null(bpf(linux_5_7, BIT(CAP_SYS_ADMIN)));
}

/* Root in a user namespace has all capabilities, but none of them counts. */
static void test_a_user_namespace(void **state)
{
    (void)state;
    const struct process_rights rights = {linux_5_8, 2, UINT64_MAX, true};
    assert_string_equal(perf_permission_needed(&rights, EACCES),
                        "CAP_PERFMON in the initial user namespace");
    assert_string_equal(bpf_permission_needed(&rights),
                        "CAP_BPF and CAP_PERFMON in the initial user namespace");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_events_of_a_kernel_that_is_closed),
        cmocka_unit_test(test_paranoid),
        cmocka_unit_test(test_bpf),
        cmocka_unit_test(test_a_user_namespace),
    };
    return cmocka_run_group_tests_name("perf_permission", tests, NULL, NULL);
}
