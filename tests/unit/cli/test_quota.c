#include "unit.h"
#include "cli/serve/quota.h"

static struct peer peer_of_user(uid_t uid)
{
    return (struct peer){.is_local = true, .has_uid = true, .uid = uid};
}

static void take_all(struct quota *quota, const struct peer *peer)
{
    for (unsigned i = 0; i < QUOTA_PROFILES_MAX; i++)
        assert_true(quota_take(quota, peer));
    assert_false(quota_take(quota, peer));
}

static void test_each_peer_has_its_own_limit(void **state)
{
    (void)state;
    const struct peer one = peer_of_user(1), other = peer_of_user(2);
    const struct peer remote = {.address = {.s6_addr = {0x20}}};
    struct quota quota;
    quota_init(&quota);
    take_all(&quota, &one);
    take_all(&quota, &other);
    take_all(&quota, &remote);
    quota_give_back(&quota, &other);
    assert_false(quota_take(&quota, &one));
    assert_true(quota_take(&quota, &other));
    assert_false(quota_take(&quota, &other));
    quota_destroy(&quota);
}

/* The place of a peer whose requests are done is reused. */
static void test_places_are_used_again(void **state)
{
    (void)state;
    struct quota quota;
    quota_init(&quota);
    for (uid_t uid = 0; uid < 3 * SESSION_USERS_MAX; uid++) {
        const struct peer peer = peer_of_user(uid);
        take_all(&quota, &peer);
        for (unsigned i = 0; i < QUOTA_PROFILES_MAX; i++)
            quota_give_back(&quota, &peer);
    }
    quota_destroy(&quota);
}

/* There are as many places as the session can have users. */
static void test_all_places(void **state)
{
    (void)state;
    struct quota quota;
    quota_init(&quota);
    for (uid_t uid = 0; uid < SESSION_USERS_MAX; uid++) {
        const struct peer peer = peer_of_user(uid);
        assert_true(quota_take(&quota, &peer));
    }
    const struct peer first = peer_of_user(0), more = peer_of_user(SESSION_USERS_MAX);
    assert_false(quota_take(&quota, &more));
    assert_true(quota_take(&quota, &first));
    quota_give_back(&quota, &first);
    quota_give_back(&quota, &first);
    assert_true(quota_take(&quota, &more));
    quota_destroy(&quota);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_peer_has_its_own_limit),
        cmocka_unit_test(test_places_are_used_again),
        cmocka_unit_test(test_all_places),
    };
    return cmocka_run_group_tests_name("quota", tests, NULL, NULL);
}
