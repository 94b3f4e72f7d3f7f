/* The kernel's functions, read from files like /proc/kallsyms. */
#include "kallsyms_text.h"

#include <errno.h>

static struct kallsyms read_text(const char *text)
{
    struct kallsyms kallsyms = {0};
    assert_int_equal(kallsyms_read_text(text, &kallsyms), 0);
    return kallsyms;
}

static void assert_name(const struct kallsyms *kallsyms, uint64_t address, const char *name)
{
    const char *found = kallsyms_find(kallsyms, address);
    if (!name) {
        assert_null(found);
        return;
    }
    assert_non_null(found);
    assert_string_equal(found, name);
}

static void test_functions(void **state)
{
    (void)state;
    struct kallsyms kallsyms = read_text("0000000000000000 A fixed_percpu_data\n"
                                         "ffffffff81000000 T _text\n"
                                         "ffffffff81000000 T second_name\n"
                                         "ffffffff81000100 t do_it.isra.0\n"
                                         "ffffffff81000200 W weak_one\n"
                                         "ffffffff81000300 D data\n"
                                         "ffffffff81000400 d more_data\n"
                                         "ffffffff81000500 T behind\n"
                                         "ffffffff81000500 D behind_as_data\n");
    assert_null(kallsyms_find(&kallsyms, 0));
    assert_name(&kallsyms, 0xffffffff80ffffff, NULL);
    assert_name(&kallsyms, 0xffffffff81000000, "_text");
    assert_name(&kallsyms, 0xffffffff810000ff, "_text");
    assert_name(&kallsyms, 0xffffffff81000100, "do_it.isra.0");
    assert_name(&kallsyms, 0xffffffff810002ff, "weak_one");
    assert_name(&kallsyms, 0xffffffff81000300, NULL);
    assert_name(&kallsyms, 0xffffffff810004ff, NULL);
    assert_name(&kallsyms, 0xffffffff81000500, "behind");
    /* The end of the last function is not known. */
    assert_name(&kallsyms, 0xffffffff81001fff, "behind");
    assert_name(&kallsyms, 0xffffffff81002000, NULL);
    assert_name(&kallsyms, UINT64_MAX, NULL);
    kallsyms_free(&kallsyms);
}

static void test_functions_by_which_threads_sleep(void **state)
{
    (void)state;
    struct kallsyms kallsyms = read_text("ffffffff81000000 T _text\n"
                                         "ffffffff81001000 T __schedule\n"
                                         "ffffffff81001000 T __sched_text_start\n"
                                         "ffffffff81001800 T schedule\n"
                                         "ffffffff81002000 T __sched_text_end\n"
                                         "ffffffff81002000 T __cpuidle_text_start\n");
    assert_false(kallsyms_is_scheduler(&kallsyms, 0xffffffff81000fff));
    assert_true(kallsyms_is_scheduler(&kallsyms, 0xffffffff81001000));
    assert_true(kallsyms_is_scheduler(&kallsyms, 0xffffffff81001fff));
    assert_false(kallsyms_is_scheduler(&kallsyms, 0xffffffff81002000));
    kallsyms_free(&kallsyms);
    kallsyms = read_text("ffffffff81000000 T _text\n");
    assert_false(kallsyms_is_scheduler(&kallsyms, 0xffffffff81000000));
    assert_false(kallsyms_is_scheduler(&kallsyms, 0));
    kallsyms_free(&kallsyms);
}

/* Modules are not sorted, and addresses between two of them belong to neither. */
static void test_modules(void **state)
{
    (void)state;
    struct kallsyms kallsyms = read_text("ffffffff81000000 T _text\n"
                                         "ffffffffc0300010 t second\t[b]\n"
                                         "ffffffffc0300000 T first\t[b]\n"
                                         "ffffffffc0100000 t of_a\t[a]\n"
                                         "ffffffffc0110000 d data_of_a\t[a]\n"
                                         "ffffffffc0500000 t bpf_prog_6deef7357e7b4530\t[bpf]\n");
    assert_name(&kallsyms, 0xffffffff81001fff, "_text");
    assert_name(&kallsyms, 0xffffffff81002000, NULL);
    assert_name(&kallsyms, 0xffffffffc010ffff, "of_a");
    assert_name(&kallsyms, 0xffffffffc0110000, NULL);
    assert_name(&kallsyms, 0xffffffffc02fffff, NULL);
    assert_name(&kallsyms, 0xffffffffc0300000, "first");
    assert_name(&kallsyms, 0xffffffffc0300010, "second");
    assert_name(&kallsyms, 0xffffffffc0302000, NULL);
    assert_name(&kallsyms, 0xffffffffc0500fff, "bpf_prog_6deef7357e7b4530");
    kallsyms_free(&kallsyms);
}

static void test_other_lines(void **state)
{
    (void)state;
    struct kallsyms kallsyms = read_text("\n"
                                         "T no_address\n"
                                         "ffffffff81000000\n"
                                         "ffffffff81000000 T\n"
                                         "ffffffff81000000 T \n"
                                         "ffffffff81000000  name\n"
                                         "fffffffff81000000 T too_many_digits\n"
                                         "FFFFFFFF81000000 T capitals\n"
                                         "ffffffff81000010 T good\n"
                                         "ffffffff81000020 T without_a_line_feed");
    assert_int_equal(kallsyms.count, 1);
    assert_name(&kallsyms, 0xffffffff81000010, "good");
    kallsyms_free(&kallsyms);
}

/* One of them is longer than any symbol. */
static void test_many_lines(void **state)
{
    (void)state;
    enum { FUNCTIONS = 20000, LONG_BYTES = 200000 };
    size_t bytes = FUNCTIONS * 64 + LONG_BYTES, length = 0;
    char *text = malloc(bytes), name[32];
    assert_non_null(text);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        length += (size_t)sprintf(text + length, "%x T function_%u\n", 0x10000000u + 16 * i, i);
        if (i == FUNCTIONS / 2) {
            memset(text + length, 'x', LONG_BYTES);
            length += LONG_BYTES;
            text[length++] = '\n';
        }
    }
    text[length] = '\0';
    struct kallsyms kallsyms = read_text(text);
    assert_int_equal(kallsyms.count, FUNCTIONS);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        sprintf(name, "function_%u", i);
        assert_name(&kallsyms, 0x10000000u + 16 * i + 15, name);
    }
    kallsyms_free(&kallsyms);
    free(text);
}

static void test_hidden_addresses(void **state)
{
    (void)state;
    static const char hidden[] = "0000000000000000 A fixed_percpu_data\n"
                                 "0000000000000000 T _text\n"
                                 "0000000000000000 T do_it\n";
    struct kallsyms kallsyms = read_text("ffffffff81000000 T kept\n");
    assert_int_equal(kallsyms_read_text(hidden, NULL), -EACCES);
    assert_int_equal(kallsyms_read_text("", NULL), -EACCES);
    assert_int_equal(kallsyms_read_text("0000000000000000 A fixed_percpu_data\n"
                                        "ffffffff81000000 T _text\n",
                                        NULL),
                     0);
    assert_int_equal(kallsyms_read_text(hidden, &kallsyms), -EACCES);
    assert_name(&kallsyms, 0xffffffff81000000, "kept");
    kallsyms_free(&kallsyms);
}

/* The same for this machine's own kernel, if it shows its symbols. */
static void test_this_kernel(void **state)
{
    (void)state;
    struct kallsyms kallsyms = {0};
    int err = kallsyms_check(KALLSYMS_PATH);
    assert_int_equal(kallsyms_read(KALLSYMS_PATH, &kallsyms), err);
    if (err) {
        assert_true(err == -EACCES || err == -ENOENT);
        skip();
    }
    assert_true(kallsyms.count > 1000);
    for (size_t i = 1; i < kallsyms.count; i++)
        assert_true(kallsyms.symbols[i - 1].address < kallsyms.symbols[i].address);
    kallsyms_free(&kallsyms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),   cmocka_unit_test(test_functions_by_which_threads_sleep),
        cmocka_unit_test(test_modules),     cmocka_unit_test(test_other_lines),
        cmocka_unit_test(test_many_lines),  cmocka_unit_test(test_hidden_addresses),
        cmocka_unit_test(test_this_kernel),
    };
    return cmocka_run_group_tests_name("kallsyms", tests, NULL, NULL);
}
