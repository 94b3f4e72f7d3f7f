#include "unit.h"
#include "cli/push/labels.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "ffff456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void assert_id(const char *text, const char *expected)
{
    char id[CONTAINER_ID_LENGTH + 1] = "none";
    assert_int_equal(container_id_in(text, id), expected != NULL);
    assert_string_equal(id, expected ? expected : "none");
}

static void test_names_that_runtimes_give(void **state)
{
    (void)state;
    assert_id("0::/system.slice/docker-" ID ".scope\n", ID);
    assert_id("4:memory:/docker/" ID "\n3:cpu:/docker/" ID "\n", ID);
    assert_id("0::/kubepods.slice/kubepods-burstable.slice/"
              "kubepods-burstable-pod12345678_1234_1234_1234_123456789012.slice/"
              "cri-containerd-" ID ".scope",
              ID);
    assert_id("0::/kubepods/besteffort/pod12345678-1234-1234-1234-123456789012/" ID "\n", ID);
    assert_id("0::/machine.slice/libpod-" ID ".scope/container\n", ID);
}

/* In nested containers, the inner one counts. */
static void test_the_last_one_counts(void **state)
{
    (void)state;
    assert_id("0::/docker/" OTHER "/docker/" ID "\n", ID);
}

static void test_what_is_no_id(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "0::/\n",
        "0::/user.slice/user-1000.slice/session-2.scope\n",
        "0::/docker/0" ID "\n",
        "0::/docker/" ID "0\n",
        "0::/docker/x" ID "\n",
        "0::/docker/" ID "_\n",
        "0::/docker/0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef\n",
        "0::/docker/0123456789abcdef\n",
        "\xff\xfe",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_id(texts[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_that_runtimes_give),
        cmocka_unit_test(test_the_last_one_counts),
        cmocka_unit_test(test_what_is_no_id),
    };
    return cmocka_run_group_tests_name("container", tests, NULL, NULL);
}
