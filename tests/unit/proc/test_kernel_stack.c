#include "unit.h"
#include "proc/kernel_stack.h"

static void assert_parsed(const char *text, const char *expected)
{
    char *copy = strdup(text);
    assert_non_null(copy);
    kernel_stack_parse(copy);
    assert_string_equal(copy, expected);
    free(copy);
}

static void test_lines_of_kernels(void **state)
{
    (void)state;
    assert_parsed("[<0>] futex_wait_queue+0x60/0x90\n"
                  "[<0>] __x64_sys_futex+0x11f/0x190\n"
                  "[<0>] entry_SYSCALL_64_after_hwframe+0x76/0x7e\n",
                  "futex_wait_queue\n__x64_sys_futex\nentry_SYSCALL_64_after_hwframe\n");
    assert_parsed("[<ffffffff8112a2b3>] futex_wait_queue_me+0xc4/0x120\n"
                  "[<ffffffffc0a1b2c3>] ext4_file_read_iter+0x4d/0x120 [ext4]\n"
                  "[<ffffffffffffffff>] 0xffffffffffffffff\n",
                  "futex_wait_queue_me\next4_file_read_iter\n");
    assert_parsed("[<0>] do_wait.part.0+0x1/0x2\n[<0>] no_size\n", "do_wait.part.0\nno_size\n");
}

static void test_places_without_a_name(void **state)
{
    (void)state;
    assert_parsed("[<0>] 0xffffffffc0123456\n[<0>] schedule+0x1/0x2\n", "[unknown]\nschedule\n");
    assert_parsed("[<0>] 0x1\n", "[unknown]\n");
}

static void test_what_is_no_such_line(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",         "\n",   "\n\n\n",  "schedule+0x1/0x2\n", "[<0>]\n", "[<0>] ",
        "<0>] a\n", "[<\n", "[<0 a\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_parsed(texts[i], "");
    /* The end may be cut off, and may be in the middle of a name. */
    assert_parsed("[<0>] schedule+0x1/0x2\n[<0>] do_na", "schedule\n");
    assert_parsed("[<0>] a+0x1/0x2\ngarbage\n[<0>] b+0x1/0x2\n", "a\nb\n");
}

/* Any text is accepted, and no byte outside of it is read. */
static void test_any_text(void **state)
{
    (void)state;
    static const char *const words[] = {"[<0>] ", "[<",       ">] ", "0x", "0",
                                        "a",      "+0x1/0x2", "\n",  " "};
    unsigned seed = 1;
    for (int round = 0; round < 100000; round++) {
        char text[128] = "";
        for (int i = 0; i < 12; i++) {
            seed = seed * 1103515245u + 12345u;
            strcat(text, words[(seed >> 16) % (sizeof words / sizeof *words)]);
        }
        size_t length = strlen(text);
        char *exact = strdup(text);
        assert_non_null(exact);
        kernel_stack_parse(exact);
        assert_true(strlen(exact) <= length);
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_of_kernels),
        cmocka_unit_test(test_places_without_a_name),
        cmocka_unit_test(test_what_is_no_such_line),
        cmocka_unit_test(test_any_text),
    };
    return cmocka_run_group_tests_name("kernel_stack", tests, NULL, NULL);
}
