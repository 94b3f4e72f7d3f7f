/* The end of the mapping that a stack is in. */
#include "unit.h"

#include "proc/stack_areas.h"

static void read_text(struct stack_areas *areas, const char *text)
{
    int fd = file_of_text(text);
    assert_int_equal(stack_areas_read(areas, fd), 0);
    close(fd);
}

static void test_ends(void **state)
{
    (void)state;
    struct stack_areas areas = {0};
    read_text(&areas, "1000-2000 ---p 00000000 00:00 0 \n"
                      "2000-5000 rw-p 00000000 00:00 0 \n"
                      "5000-6000 r--s 00000000 00:01 7 /memory\n"
                      "9000-c000 rw-p 00000000 00:00 0 [stack]\n");
    assert_int_equal(stack_areas_end(&areas, 0x2000), 0x5000);
    assert_int_equal(stack_areas_end(&areas, 0x4fff), 0x5000);
    /* The next mapping is not part of the stack. */
    assert_int_equal(stack_areas_end(&areas, 0x5000), 0x6000);
    assert_int_equal(stack_areas_end(&areas, 0x1800), 0); /* a guard page */
    assert_int_equal(stack_areas_end(&areas, 0xc000), 0);
    /* The main thread's stack has grown since. */
    assert_int_equal(stack_areas_end(&areas, 0x8800), 0xc000);
    stack_areas_free(&areas);
}

static void test_read_again(void **state)
{
    (void)state;
    struct stack_areas areas = {0};
    assert_int_equal(stack_areas_end(&areas, 0x2000), 0);
    read_text(&areas, "2000-5000 rw-p 00000000 00:00 0 \n");
    read_text(&areas, "7000-8000 rw-p 00000000 00:00 0 \n");
    assert_int_equal(stack_areas_end(&areas, 0x2000), 0);
    assert_int_equal(stack_areas_end(&areas, 0x7ff8), 0x8000);
    assert_true(stack_areas_read(&areas, -1) < 0);
    assert_int_equal(stack_areas_end(&areas, 0x7ff8), 0);
    stack_areas_free(&areas);
}

static void test_code(void **state)
{
    (void)state;
    struct stack_areas areas = {0};
    read_text(&areas, "1000-2000 ---p 00000000 00:00 0 \n"
                      "2000-3000 r--p 00000000 fe:01 7 /program\n"
                      "3000-4000 r-xp 00001000 fe:01 7 /program\n"
                      "4000-5000 --xp 00002000 fe:01 7 /program\n"
                      "9000-c000 rwxp 00000000 00:00 0 [stack]\n");
    assert_int_equal(areas.count, 4);
    assert_false(stack_areas_find(&areas, 0x2fff)->has_code);
    assert_true(stack_areas_find(&areas, 0x3000)->has_code);
    assert_true(stack_areas_find(&areas, 0x4fff)->has_code);
    assert_true(stack_areas_find(&areas, 0x9000)->has_code);
    stack_areas_free(&areas);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ends),
                                       cmocka_unit_test(test_read_again),
                                       cmocka_unit_test(test_code)};
    return cmocka_run_group_tests_name("stack_areas", tests, NULL, NULL);
}
