/* Parts of this program's own functions that lie elsewhere, as compilers place them. */
#include "own_module.h"
#include "unit.h"
#include "elf/dynamic_symbol.h"
#include "unwind/moved_part.h"

#ifdef __x86_64__
#define BEGIN "push %rbp\n .cfi_def_cfa_offset 16\n"
#define JUMP_IF(label) "je " label "\n"
#define JUMP(label) "jmp " label "\n"
#define END "pop %rbp\n .cfi_def_cfa_offset 8\n"
#define RETURN "ret\n"
#else
#define BEGIN "stp x29, x30, [sp, #-16]!\n .cfi_def_cfa_offset 16\n"
#define JUMP_IF(label) "b.eq " label "\n"
#define JUMP(label) "b " label "\n"
#define END "ldp x29, x30, [sp], #16\n .cfi_def_cfa_offset 0\n"
#define RETURN "ret\n"
#endif
#define FUNCTION(name) ".type " name ", %function\n" name ":\n .cfi_startproc\n"
#define END_OF(name) ".cfi_endproc\n .size " name ", . - " name "\n"

__asm__(
    ".pushsection .text.moved_part_test, \"axR\", %progbits\n" FUNCTION("split") BEGIN JUMP_IF(
        "split_part") "split_back:\n" END RETURN END_OF("split") FUNCTION("whole")
        BEGIN JUMP_IF("1f") "whole_back:\n nop\n 1:" END JUMP("split") END_OF(
            "whole") ".popsection\n"
                     ".pushsection .text.moved_part_test_elsewhere, \"axR\", %progbits\n" FUNCTION(
                         "split_part") ".cfi_def_cfa_offset 16\n nop\n" JUMP("split_back")
                         END_OF("split_part") FUNCTION("torn_part") ".cfi_def_cfa_offset 16\n" JUMP(
                             "split_back") JUMP("whole_back") END_OF("torn_part")
                             FUNCTION("other_frame") ".cfi_def_cfa_offset 32\n" JUMP("split_back")
                                 END_OF("other_frame") ".popsection\n");

/* Many jumps to a function, before the jump to the part. */
#define JUMPS_BEFORE(count) ".rept " #count "\n" JUMP_IF("whole") ".endr\n" JUMP_IF("split_part")
__asm__(".pushsection .text.moved_part_test_far, \"axR\", %progbits\n" FUNCTION("far_part")
            BEGIN JUMPS_BEFORE(200) END RETURN END_OF("far_part") FUNCTION("too_far_part")
                BEGIN JUMPS_BEFORE(256) END RETURN END_OF("too_far_part") ".popsection\n");

static struct module_part symbol(const char *name)
{
    struct module_part found;
    assert_true(dynamic_symbol_find(&module, name, STT_FUNC, &found));
    return found;
}

static uint64_t find(const char *name)
{
    struct rule_tables tables = {0};
    const struct module_part function = symbol(name);
    uint64_t part = moved_part_find(&tables, &module, &function);
    rule_tables_free(&tables);
    return part;
}

static void test_a_part_is_found(void **state)
{
    (void)state;
    assert_int_equal(find("split"), symbol("split_part").address);
}

/* A tail call to another function. */
static void test_a_call_at_the_end_is_no_part(void **state)
{
    (void)state;
    assert_int_equal(find("whole"), 0);
}

/* A file may have any number of jumps: looking all of them up would take long. */
static void test_a_part_behind_many_jumps(void **state)
{
    (void)state;
    assert_int_equal(find("far_part"), symbol("split_part").address);
    assert_int_equal(find("too_far_part"), 0);
}

static uint64_t find_function(const char *name)
{
    struct rule_tables tables = {0};
    const struct module_part part = symbol(name);
    const struct function_range range = {part.address, part.address + part.bytes};
    uint64_t function = moved_part_function(&tables, &module, &range);
    rule_tables_free(&tables);
    return function;
}

static void test_the_function_of_a_part(void **state)
{
    (void)state;
    assert_int_equal(find_function("split_part"), symbol("split").address);
    assert_int_equal(find_function("split"), 0);
    assert_int_equal(find_function("whole"), 0);
}

/* By these jumps it would belong to two functions, or its frame would change on the way. */
static void test_a_part_of_nothing(void **state)
{
    (void)state;
    assert_int_equal(find_function("torn_part"), 0);
    assert_int_equal(find_function("other_frame"), 0);
}

static void test_what_is_no_function(void **state)
{
    (void)state;
    struct rule_tables tables = {0};
    assert_int_equal(moved_part_find(&tables, &module, &(struct module_part){0, 4096}), 0);
    assert_int_equal(
        moved_part_find(&tables, &module, &(struct module_part){UINT64_MAX - 7, UINT64_MAX}), 0);
    rule_tables_free(&tables);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_part_is_found),
        cmocka_unit_test(test_a_call_at_the_end_is_no_part),
        cmocka_unit_test(test_a_part_behind_many_jumps),
        cmocka_unit_test(test_the_function_of_a_part),
        cmocka_unit_test(test_a_part_of_nothing),
        cmocka_unit_test(test_what_is_no_function),
    };
    return cmocka_run_group_tests(tests, open_own_module, close_own_module);
}
