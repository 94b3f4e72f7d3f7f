/* The addresses that code of the build's architecture refers to. */
#include "unit.h"
#include "runtime/go/reference.h"

#define ADDRESS 0x401000u

#ifdef __x86_64__
static void test_ends_of_instructions(void **state)
{
    (void)state;
    static const uint8_t displacement[] = {0xf0, 0xff, 0xff, 0xff};
    static const unsigned ends[REFERENCE_WAYS] = {4, 5, 8};
    uint64_t data = 0;
    for (unsigned way = 0; way < REFERENCE_WAYS; way++) {
        assert_true(reference_may_be_at(displacement, 4, ADDRESS, way, &data));
        assert_int_equal(data, ADDRESS + ends[way] - 0x10);
    }
    assert_false(reference_may_be_at(displacement, 3, ADDRESS, 0, &data));
}
#define TESTS cmocka_unit_test(test_ends_of_instructions)
#else
static uint64_t refers_to(uint32_t first, uint32_t second)
{
    const uint32_t code[] = {first, second};
    uint64_t data = 0;
    assert_true(reference_may_be_at((const uint8_t *)code, sizeof code, ADDRESS + 4, 0, &data));
    return data;
}

static void test_pages(void **state)
{
    (void)state;
    static const uint32_t other[] = {0xd503201f, 0x91004000}; /* nop; add x0, x0, #16 */
    uint64_t data;
    assert_int_equal(refers_to(0xb0000000, 0x91004000), 0x402010); /* adrp x0, page + 1; add */
    assert_int_equal(refers_to(0xf0ffffe0, 0xf9400800), 0x400010); /* page - 1; ldr [x0, #16] */
    assert_false(reference_may_be_at((const uint8_t *)other, 8, ADDRESS, 0, &data));
    assert_false(reference_may_be_at((const uint8_t *)other, 4, ADDRESS, 0, &data));
    assert_false(reference_may_be_at((const uint8_t *)other, 8, ADDRESS, 1, &data));
}
#define TESTS cmocka_unit_test(test_pages)
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {TESTS};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
