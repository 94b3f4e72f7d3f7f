/* Calls that do not return. */
#include "unit.h"
#include "make_walk.h"
#include "unwind/code/last_call.h"

/* Where calls return to; all except the last are calls of functions in the linkage table. */
enum { OF_EXIT = 0x110, OF_READ = 0x120, OF_OTHER = 0x130, EXIT = 0x500, READ = 0x510 };

static struct made_walk made;
static char exit_name[] = "exit", read_name[] = "read";
static struct stub stubs[] = {{MADE_ADDRESS + EXIT, MADE_ADDRESS + EXIT + 16, exit_name, 0},
                              {MADE_ADDRESS + READ, MADE_ADDRESS + READ + 16, read_name, 0}};
static struct function_range functions[] = {{MADE_ADDRESS + 0x200, MADE_ADDRESS + 0x300}};

static int set_up(void **state)
{
    (void)state;
    begin_module(&made);
    put_call(&made, OF_EXIT, EXIT);
    put_call(&made, OF_READ, READ);
    put_call(&made, OF_OTHER, 0x200);
    put_call(&made, 0x200, READ);
    put_code(&made, 0x180, made_thread_end, sizeof made_thread_end);
    end_module(&made);
    made.module.entry_address = MADE_ADDRESS + 0x3000;
    made.module.stubs = (struct stubs){.items = stubs, .count = 2, .were_read = true};
    made.module.functions = (struct functions){.items = functions, .count = 1, .were_read = true};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    made.module.stubs = (struct stubs){0};
    made.module.functions = (struct functions){0};
    made_walk_free(&made);
    return 0;
}

static bool is_last(uint64_t offset)
{
    return call_is_known_last(&made.module, MADE_ADDRESS + offset);
}

static void test_by_what_is_called(void **state)
{
    (void)state;
    assert_true(is_last(OF_EXIT));
    assert_false(is_last(OF_READ));
    assert_false(is_last(OF_OTHER));
}

static void test_by_what_follows(void **state)
{
    (void)state;
    assert_true(is_last(0x180));
    assert_true(is_last(0x200)); /* a function */
    assert_false(is_last(0x204));
    made.module.entry_address = MADE_ADDRESS + OF_READ - 10;
    assert_true(is_last(OF_READ));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_by_what_is_called),
        TEST(test_by_what_follows),
    };
    return cmocka_run_group_tests_name("last_call", tests, NULL, NULL);
}
