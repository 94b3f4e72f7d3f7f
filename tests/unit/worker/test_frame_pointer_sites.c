#include "unit.h"
#include "worker/frame_pointer_sites.h"

static struct site_keys keys_of(pid_t tid, uint64_t pc, uint64_t sp, uint64_t *addresses,
                                size_t depth)
{
    struct snapshot snapshot = {0};
    struct stack stack = {.addresses = addresses, .depth = depth};
    snapshot.registers.values[architecture.pc] = pc;
    snapshot.registers.values[architecture.sp] = sp;
    return sites_keys(tid, &snapshot, &stack);
}

static void test_keys_are_of_place_and_callers(void **state)
{
    (void)state;
    uint64_t addresses[] = {0x1000, 0x2000, 0x3000}, other[] = {0x1000, 0x2001, 0x3000};
    const struct site_keys keys = keys_of(7, 0x1000, 0x7000, addresses, 3);
    const struct site_keys others[] = {keys_of(7, 0x1001, 0x7000, addresses, 3),
                                       keys_of(7, 0x1000, 0x7000, addresses, 2),
                                       keys_of(7, 0x1000, 0x7000, other, 3)};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_true(keys.shared != others[i].shared);
        assert_true(keys.own != others[i].own);
    }
    assert_true(keys.own != keys.shared);
}

static void test_threads_share_a_key_and_have_their_own(void **state)
{
    (void)state;
    uint64_t addresses[] = {0x1000, 0x2000};
    const struct site_keys keys = keys_of(7, 0x1000, 0x7000, addresses, 2);
    const struct site_keys again = keys_of(7, 0x1000, 0x7000, addresses, 2);
    const struct site_keys deeper = keys_of(7, 0x1000, 0x7008, addresses, 2);
    const struct site_keys sibling = keys_of(8, 0x1000, 0x7000, addresses, 2);
    assert_true(keys.shared == again.shared && keys.own == again.own);
    assert_true(keys.shared == deeper.shared && keys.own != deeper.own);
    assert_true(keys.shared == sibling.shared && keys.own != sibling.own);
}

static void test_many_sites(void **state)
{
    (void)state;
    struct sites sites = {0};
    assert_null(sites_find(&sites, 0));
    for (uint64_t i = 0; i < 5000; i++) {
        assert_null(sites_find(&sites, i << 32));
        assert_int_equal(sites_add(&sites, i << 32), 0);
        struct site *site = sites_find(&sites, i << 32);
        assert_non_null(site);
        assert_false(site->is_known);
        site->is_known = true;
        site->distance = i + 1;
    }
    for (uint64_t i = 0; i < 5000; i++) {
        struct site *site = sites_find(&sites, i << 32);
        assert_non_null(site);
        assert_true(site->is_known);
        assert_int_equal(site->distance, i + 1);
        assert_null(sites_find(&sites, i << 32 | 1));
    }
    sites_free(&sites);
    assert_null(sites_find(&sites, 0));
}

/* A server may create a thread for each request. */
static void test_sites_are_bounded(void **state)
{
    (void)state;
    struct sites sites = {0};
    size_t most = 0;
    for (uint64_t i = 1; i <= 1000000; i++) {
        assert_int_equal(sites_add(&sites, i << 20), 0);
        most = sites.count > most ? sites.count : most;
    }
    assert_in_range(most, 100000, 300000);
    assert_non_null(sites_find(&sites, (uint64_t)1000000 << 20));
    assert_null(sites_find(&sites, 1 << 20));
    sites_free(&sites);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_of_place_and_callers),
        cmocka_unit_test(test_threads_share_a_key_and_have_their_own),
        cmocka_unit_test(test_many_sites),
        cmocka_unit_test(test_sites_are_bounded),
    };
    return cmocka_run_group_tests_name("frame_pointer_sites", tests, NULL, NULL);
}
