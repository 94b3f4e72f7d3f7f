/* Linkage stubs: this program's own, and the forms of their code. */
#include "unit.h"
#include "own_module.h"

static void test_own_stubs(void **state)
{
    (void)state;
    const struct stub *found = NULL;
    assert_null(stubs_find(&module, 0));
    for (size_t i = 0; i < module.stubs.count; i++) {
        const struct stub *stub = &module.stubs.items[i];
        if (stub->name && strcmp(stub->name, "_cmocka_run_group_tests") == 0)
            found = stub;
        for (uint64_t at = stub->start; at < stub->end; at++)
            assert_ptr_equal(stubs_find(&module, at), stub);
    }
    assert_non_null(found); /* main calls it */
    assert_null(stubs_find(&module, module.entry_address));
}

#ifdef __x86_64__

static void test_forms(void **state)
{
    (void)state;
    static const uint8_t forms[][STUB_BYTES] = {
        {0xff, 0x25, 0x10, 0, 0, 0},
        {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x0c, 0, 0, 0},
        {0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x0b, 0, 0, 0},
        {0xf2, 0xff, 0x25, 0x0f, 0, 0, 0},
    };
    uint64_t slot;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        assert_true(stub_slot(forms[i], STUB_BYTES, 0x1000, &slot));
        assert_int_equal(slot, 0x1016);
    }
    assert_true(stub_slot(forms[0], 6, 0x1000, &slot));
    assert_false(stub_slot(forms[0], 5, 0x1000, &slot));
    assert_false(stub_slot(forms[1], 4, 0x1000, &slot));
    /* push; jmp: the head of the table */
    assert_false(stub_slot((const uint8_t[STUB_BYTES]){0xff, 0x35, 2, 0x2f}, STUB_BYTES, 0, &slot));
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_own_stubs, open_own_module, close_own_module),
#ifdef __x86_64__
        cmocka_unit_test(test_forms),
#endif
    };
    return cmocka_run_group_tests_name("stubs", tests, NULL, NULL);
}
