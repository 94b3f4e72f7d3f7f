/* Forms of attribute values: the bytes that each takes, and its value (DWARF 5, 7.5.6). */
#include "unit.h"
#include "elf/dwarf.h"
#include "symbol/dwarf/info.h"

#include <errno.h>

#define NO_NUMBER 0u /* for a form whose value is not used */

static const struct unit unit = {.version = 5, .address_bytes = 8, .offset_bytes = 4};

static const struct {
    unsigned form;
    uint8_t bytes[18];
    size_t count;
    uint64_t number;
} forms[] = {
    {DW_FORM_addr, {8, 7, 6, 5, 4, 3, 2, 1}, 8, 0x102030405060708},
    {DW_FORM_data1, {0x81}, 1, 0x81},
    {DW_FORM_data2, {1, 2}, 2, 0x201},
    {DW_FORM_data4, {1, 2, 3, 4}, 4, 0x4030201},
    {DW_FORM_data8, {1, 2, 3, 4, 5, 6, 7, 8}, 8, 0x807060504030201},
    {DW_FORM_data16, {1}, 16, NO_NUMBER},
    {DW_FORM_sdata, {0xff, 0x7e}, 2, (uint64_t)-129},
    {DW_FORM_udata, {0xff, 0x7e}, 2, 0x3f7f},
    {DW_FORM_flag, {1}, 1, 1},
    {DW_FORM_flag_present, {0}, 0, 1},
    {DW_FORM_implicit_const, {0}, 0, (uint64_t)-5},
    {DW_FORM_string, "text", 5, NO_NUMBER},
    {DW_FORM_strp, {1, 2, 3, 4}, 4, 0x4030201},
    {DW_FORM_line_strp, {1, 2, 3, 4}, 4, 0x4030201},
    {DW_FORM_sec_offset, {1, 2, 3, 4}, 4, 0x4030201},
    {DW_FORM_strx, {0x80, 1}, 2, 0x80},
    {DW_FORM_strx1, {1}, 1, 1},
    {DW_FORM_strx2, {1, 2}, 2, 0x201},
    {DW_FORM_strx3, {1, 2, 3}, 3, 0x30201},
    {DW_FORM_strx4, {1, 2, 3, 4}, 4, 0x4030201},
    {DW_FORM_addrx, {0x80, 1}, 2, 0x80},
    {DW_FORM_addrx3, {1, 2, 3}, 3, 0x30201},
    {DW_FORM_rnglistx, {0x80, 1}, 2, 0x80},
    {DW_FORM_loclistx, {0x80, 1}, 2, 0x80},
    {DW_FORM_ref1, {1}, 1, 1},
    {DW_FORM_ref2, {1, 2}, 2, 0x201},
    {DW_FORM_ref4, {1, 2, 3, 4}, 4, 0x4030201},
    {DW_FORM_ref8, {1, 2, 3, 4, 5, 6, 7, 8}, 8, 0x807060504030201},
    {DW_FORM_ref_udata, {0x80, 1}, 2, 0x80},
    {DW_FORM_ref_addr, {1, 2, 3, 4}, 4, 0x4030201},
    {DW_FORM_ref_sig8, {1, 2, 3, 4, 5, 6, 7, 8}, 8, 0x807060504030201},
    {DW_FORM_block1, {3, 1, 1, 1}, 4, NO_NUMBER},
    {DW_FORM_block2, {3, 0, 1, 1, 1}, 5, NO_NUMBER},
    {DW_FORM_block4, {3, 0, 0, 0, 1, 1, 1}, 7, NO_NUMBER},
    {DW_FORM_block, {3, 1, 1, 1}, 4, NO_NUMBER},
    {DW_FORM_exprloc, {3, 1, 1, 1}, 4, NO_NUMBER},
    {DW_FORM_indirect, {DW_FORM_data2, 1, 2}, 3, 0x201},
};
#define FORM_COUNT (sizeof forms / sizeof *forms)

static bool read_form(size_t i, size_t limit, struct bytes *bytes, struct value *value)
{
    *bytes = (struct bytes){.at = forms[i].bytes, .end = forms[i].bytes + limit};
    return value_read(&unit, bytes, forms[i].form, -5, value);
}

static void test_each_form_takes_its_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < FORM_COUNT; i++) {
        struct bytes bytes;
        struct value value;
        assert_true(read_form(i, sizeof forms[i].bytes, &bytes, &value));
        assert_int_equal(bytes.at - forms[i].bytes, forms[i].count);
        assert_int_equal(value.number, forms[i].number);
        if (forms[i].form == DW_FORM_string)
            assert_string_equal((const char *)value.text, "text");
        else
            assert_null(value.text);
    }
}

static void test_each_form_may_be_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < FORM_COUNT; i++) {
        for (size_t limit = 0; limit < forms[i].count; limit++) {
            struct bytes bytes;
            struct value value;
            assert_false(read_form(i, limit, &bytes, &value));
        }
    }
}

static void test_forms_that_there_are_not(void **state)
{
    (void)state;
    static const uint8_t twice[] = {DW_FORM_indirect, DW_FORM_data1, 1};
    static const uint8_t implicit[] = {DW_FORM_implicit_const, 1, 1};
    const struct unit large = {.version = 5, .address_bytes = 9, .offset_bytes = 4};
    struct bytes bytes = {.at = twice, .end = twice + sizeof twice};
    struct value value;
    assert_false(value_read(&unit, &bytes, DW_FORM_indirect, 0, &value));
    bytes = (struct bytes){.at = implicit, .end = implicit + sizeof implicit};
    assert_false(value_read(&unit, &bytes, DW_FORM_indirect, 0, &value));
    assert_false(value_read(&unit, &bytes, 0x7f, 0, &value));
    assert_false(value_read(&large, &bytes, DW_FORM_addr, 0, &value));
}

/* Addresses of more than 64 bits mean a damaged header. */
static void test_sizes_of_addresses_in_unit_headers(void **state)
{
    (void)state;
    unsigned char header[] = {9, 0, 0, 0, 5, 0, DW_UT_compile, 8, 0, 0, 0, 0, 0};
    struct debug_info info = {0};
    struct unit read;
    info.sections[DEBUG_INFO] = (struct section){.memory = header, .bytes = sizeof header};
    for (unsigned address_bytes = 1; address_bytes < 256; address_bytes++) {
        header[7] = (unsigned char)address_bytes;
        assert_int_equal(unit_read(&info, 0, &read), address_bytes <= 8 ? 0 : -ENOEXEC);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_form_takes_its_bytes),
        cmocka_unit_test(test_each_form_may_be_cut),
        cmocka_unit_test(test_forms_that_there_are_not),
        cmocka_unit_test(test_sizes_of_addresses_in_unit_headers),
    };
    return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
