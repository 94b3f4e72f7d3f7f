/* The end of a function of unknown size. */
#include "unit.h"

#ifdef __x86_64__

#include "make_walk.h"
#include "unwind/code/code_end.h"

/* The end of the function that the code begins with, in bytes from there. */
static uint64_t end_of(const uint8_t *code, size_t bytes, uint64_t limit)
{
    static struct made_walk made;
    begin_module(&made);
    put_code(&made, 0x100, code, bytes);
    end_module(&made);
    uint64_t start = MADE_ADDRESS + 0x100,
             end = code_end_of_function(&made.module, start, start + limit);
    made_walk_free(&made);
    return end - start;
}

static void test_the_first_return(void **state)
{
    (void)state;
    /* 0 pop %rbx; 1 ret; 2 ret */
    static const uint8_t code[] = {0x5b, 0xc3, 0xc3};
    assert_int_equal(end_of(code, sizeof code, 100), 2);
    assert_int_equal(end_of(code, sizeof code, 1), 1);
}

static void test_what_is_jumped_to(void **state)
{
    (void)state;
    /* 0 je 5; 2 jmp 6; 4 ret; 5 ret; 6 jne 5; 8 ret; 9 ret */
    static const uint8_t code[] = {0x74, 0x03, 0xeb, 0x02, 0xc3, 0xc3, 0x75, 0xfd, 0xc3, 0xc3};
    assert_int_equal(end_of(code, sizeof code, 100), 9);
    /* Not beyond what is known to be another's. */
    assert_int_equal(end_of(code, sizeof code, 5), 4);
}

/* A jump at the end of a function may be a tail call. */
static void test_a_jump_to_the_start_of_a_function(void **state)
{
    (void)state;
    /* 0 jmp 16; 16 ret */
    static const uint8_t code[17] = {0xeb, 0x0e, [16] = 0xc3};
    assert_int_equal(end_of(code, sizeof code, 100), 2);
}

static void test_what_is_no_code(void **state)
{
    (void)state;
    static const uint8_t data[] = {0x90, 0x06, 0x06}; /* push %es: not in 64-bit mode */
    assert_int_equal(end_of(data, sizeof data, 100), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_return),
        cmocka_unit_test(test_what_is_jumped_to),
        cmocka_unit_test(test_a_jump_to_the_start_of_a_function),
        cmocka_unit_test(test_what_is_no_code),
    };
    return cmocka_run_group_tests_name("code_end", tests, NULL, NULL);
}

#elif defined __aarch64__

#include "make_walk.h"
#include "unwind/code/code_end.h"

/* The end of the function that the code begins with, in instructions from there. */
static uint64_t end_of(const uint32_t *code, size_t bytes, uint64_t limit)
{
    static struct made_walk made;
    begin_module(&made);
    put_code(&made, 0x100, (const uint8_t *)code, bytes);
    end_module(&made);
    uint64_t start = MADE_ADDRESS + 0x100,
             end = code_end_of_function(&made.module, start, start + 4 * limit);
    made_walk_free(&made);
    return (end - start) / 4;
}

static void test_the_first_return(void **state)
{
    (void)state;
    static const uint32_t ends[] = {
        0xd65f03c0, /* ret */
        0xd65f0bff, /* retaa */
        0xd61f0060, /* br x3 */
        0xd71f0a11, /* braa x16, x17 */
        0xd4200020, /* brk #1 */
        0xd4a00001, /* dcps1 */
        0x00000000, /* udf #0 */
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        /* 0 nop; 1 svc #0; 2 blr x2; 3 that; 4 ret */
        const uint32_t code[] = {0xd503201f, 0xd4000001, 0xd63f0040, ends[i], 0xd65f03c0};
        assert_int_equal(end_of(code, sizeof code, 25), 4);
        assert_int_equal(end_of(code, sizeof code, 1), 1);
    }
}

static void test_what_is_jumped_to(void **state)
{
    (void)state;
    /* 0 cbz w0, 3; 1 tbz w0, #3, 5; 2 ret; 3 b 6; 4 ret; 5 b.ne 7; 6 ret; 7 ret; 8 ret */
    static const uint32_t code[] = {0x34000060, 0x36180080, 0xd65f03c0, 0x14000003, 0xd65f03c0,
                                    0x54000041, 0xd65f03c0, 0xd65f03c0, 0xd65f03c0};
    assert_int_equal(end_of(code, sizeof code, 25), 8);
    /* Not beyond what is known to be another's. */
    assert_int_equal(end_of(code, sizeof code, 6), 6);
    assert_int_equal(end_of(code, sizeof code, 5), 4);
    /* 0 cbnz x0, 0; 1 ret; 2 ret */
    static const uint32_t back[] = {0xb5000000, 0xd65f03c0, 0xd65f03c0};
    assert_int_equal(end_of(back, sizeof back, 25), 2);
}

/* A jump at the end of a function may be a tail call. A conditional jump is not. */
static void test_a_jump_to_the_start_of_a_function(void **state)
{
    (void)state;
    static const uint32_t begins[] = {
        0xd503233f, /* paciasp */
        0xd503245f, /* bti c */
        0xa9be7bfd, /* stp x29, x30, [sp, #-32]! */
        0xd10043ff, /* sub sp, sp, #16 */
    };
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        /* 0 b 3; 1 nop; 2 ret; 3 that; 4 ret */
        const uint32_t jump[] = {0x14000003, 0xd503201f, 0xd65f03c0, begins[i], 0xd65f03c0};
        assert_int_equal(end_of(jump, sizeof jump, 25), 1);
        /* 0 b.ne 3; 1 nop; 2 ret; 3 that; 4 ret */
        const uint32_t branch[] = {0x54000061, 0xd503201f, 0xd65f03c0, begins[i], 0xd65f03c0};
        assert_int_equal(end_of(branch, sizeof branch, 25), 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_return),
        cmocka_unit_test(test_what_is_jumped_to),
        cmocka_unit_test(test_a_jump_to_the_start_of_a_function),
    };
    return cmocka_run_group_tests_name("code_end", tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: no tests for this architecture */
}

#endif
