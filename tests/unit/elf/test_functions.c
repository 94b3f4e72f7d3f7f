/* Functions from the symbol table of this program itself. */
#include "unit.h"
#include "own_module.h"
#include "elf/functions.h"

#include <link.h>
#include <unistd.h>

__attribute__((noinline)) static int first_function(int number)
{
    return number * 3 + (int)getpid();
}

static int take_bias(struct dl_phdr_info *info, size_t size, void *bias)
{
    (void)size;
    *(uint64_t *)bias = info->dlpi_addr;
    return 1; /* the program itself comes first */
}

static uint64_t own_address(void *address)
{
    uint64_t bias = 0;
    dl_iterate_phdr(take_bias, &bias);
    return (uint64_t)(uintptr_t)address - bias;
}

static void test_own_functions(void **state)
{
    (void)state;
    uint64_t start = own_address((void *)(uintptr_t)first_function);
    struct function_range range;
    assert_true(first_function(1) != 0);
    for (uint64_t at = 0; at < 4; at++) {
        assert_true(functions_find(&module, start + at, &range));
        assert_int_equal(range.start, start);
        assert_in_range(range.end - start, 5, 1000);
    }
    assert_true(functions_find(&module, start - 1, &range) == false || range.end <= start);
}

static void test_no_function(void **state)
{
    (void)state;
    struct function_range range;
    assert_false(functions_find(&module, 0, &range));
    assert_false(functions_find(&module, UINT64_MAX, &range));
    /* Data is not a function. */
    assert_false(functions_find(&module, own_address(&module), &range));
}

static void test_they_are_in_order_and_apart(void **state)
{
    (void)state;
    struct function_range range;
    functions_find(&module, 0, &range);
    assert_in_range(module.functions.count, 10, 100000);
    for (size_t i = 1; i < module.functions.count; i++) {
        assert_true(module.functions.items[i - 1].start < module.functions.items[i].start);
        assert_true(module.functions.items[i].start < module.functions.items[i].end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_own_functions, open_own_module, close_own_module),
        cmocka_unit_test_setup_teardown(test_no_function, open_own_module, close_own_module),
        cmocka_unit_test_setup_teardown(test_they_are_in_order_and_apart, open_own_module,
                                        close_own_module),
    };
    return cmocka_run_group_tests_name("functions", tests, NULL, NULL);
}
