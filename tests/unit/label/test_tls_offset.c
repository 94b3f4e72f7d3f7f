/* The computed place of this program's own TLS block, compared with the address of a variable in
 * it. */
#include "own_module.h"
#include "unit.h"
#include "elf/dynamic_symbol.h"
#include "label/tls_offset.h"

__thread int tls_offset_test_variable __attribute__((aligned(32))) = 1;

static void test_the_formula_is_the_linkers(void **state)
{
    (void)state;
    struct module_part symbol;
    assert_true(dynamic_symbol_find(&module, "tls_offset_test_variable", STT_TLS, &symbol));
    assert_false(dynamic_symbol_find(&module, "tls_offset_test_variable", STT_OBJECT, &symbol));
    assert_false(dynamic_symbol_find(&module, "no_such_variable", STT_TLS, &symbol));
    uintptr_t pointer = (uintptr_t)__builtin_thread_pointer();
    uint64_t offset = (uint64_t)tls_offset_of_main(&module.tls) + symbol.address;
    assert_int_equal(pointer + offset, (uintptr_t)&tls_offset_test_variable);
}

#ifdef __x86_64__
static void test_a_block_keeps_its_alignment(void **state)
{
    (void)state;
    assert_int_equal(tls_offset_of_main(&(struct tls_segment){0x1000, 8, 8}), -8);
    assert_int_equal(tls_offset_of_main(&(struct tls_segment){0x1000, 12, 8}), -16);
    assert_int_equal(tls_offset_of_main(&(struct tls_segment){0x1000, 12, 0}), -12);
    /* The segment starts 8 bytes after a multiple of 32, in memory as in the file. */
    assert_int_equal(tls_offset_of_main(&(struct tls_segment){0x1008, 12, 32}), -24);
}

static void test_a_library_has_a_fixed_place_or_none(void **state)
{
    (void)state;
    int64_t offset;
    assert_true(tls_offset_of_library(0x40, &offset));
    assert_int_equal(offset, -0x40);
    assert_false(tls_offset_of_library(0, &offset));
    assert_false(tls_offset_of_library(UINT64_MAX, &offset));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_formula_is_the_linkers),
#ifdef __x86_64__
        cmocka_unit_test(test_a_block_keeps_its_alignment),
        cmocka_unit_test(test_a_library_has_a_fixed_place_or_none),
#endif
    };
    return cmocka_run_group_tests_name("tls_offset", tests, open_own_module, close_own_module);
}
