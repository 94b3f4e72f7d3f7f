/* The instructions of call frame information (DWARF 5, 6.4.2), and which of them apply to an
 * address. */
#include "make_cfi.h"

#define START 0x1000u

static struct cfi_row row;
static const uint8_t common[] = {DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1};

/* Finds the row of START + offset by a program, which follows the CIE's. */
static bool find(uint64_t offset, const uint8_t *program, size_t bytes)
{
    return cfi_find_row(made_entry(START, START + 0x10000, common, sizeof common, program, bytes),
                        START + offset, &row);
}

static void assert_cfa(uint64_t number, int64_t offset)
{
    assert_false(row.cfa_is_expression);
    assert_int_equal(row.cfa_register, number);
    assert_true(row.cfa_offset == offset);
}

static void assert_register(unsigned number, enum cfi_kind kind, int64_t offset)
{
    assert_int_equal(row.registers[number].kind, kind);
    assert_true(row.registers[number].offset == offset);
}

static void test_the_common_program(void **state)
{
    (void)state;
    assert_true(find(0, NULL, 0));
    assert_cfa(7, 8);
    for (unsigned i = 0; i < REGISTERS_MAX; i++)
        assert_register(i, i == 16 ? CFI_AT_OFFSET : CFI_SAME, i == 16 ? -8 : 0);
}

static void test_where_the_cfa_is(void **state)
{
    (void)state;
    assert_true(find(0, BYTES(DW_CFA_def_cfa, 6, 0x90, 1)));
    assert_cfa(6, 144);
    assert_true(find(0, BYTES(DW_CFA_def_cfa_register, 6)));
    assert_cfa(6, 8);
    assert_true(find(0, BYTES(DW_CFA_def_cfa_offset, 0x80, 2)));
    assert_cfa(7, 256);
    /* Signed offsets are multiplied by the data factor, unsigned ones are not. */
    assert_true(find(0, BYTES(DW_CFA_def_cfa_sf, 3, 0x7e)));
    assert_cfa(3, 16);
    assert_true(find(0, BYTES(DW_CFA_def_cfa_offset_sf, 2)));
    assert_cfa(7, -16);
    /* Any number is accepted here; callers check whether it is useful. */
    assert_true(find(0, BYTES(DW_CFA_def_cfa, 0xe7, 7, 8)));
    assert_cfa(999, 8);
}

static void test_cfa_by_expression(void **state)
{
    (void)state;
    static const uint8_t program[] = {
        DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x78, DW_OP_deref, 0x41, DW_CFA_def_cfa, 7, 8};
    assert_true(find(0, program, sizeof program));
    assert_true(row.cfa_is_expression);
    assert_ptr_equal(row.cfa_expression.at, program + 2);
    assert_int_equal(bytes_left(&row.cfa_expression), 3);
    assert_true(find(1, program, sizeof program)); /* no longer an expression */
    assert_cfa(7, 8);
    assert_true(find(0, BYTES(DW_CFA_def_cfa_expression, 1, DW_OP_breg6, DW_CFA_def_cfa_sf, 7, 1)));
    assert_cfa(7, -8);
}

static void test_where_registers_are(void **state)
{
    (void)state;
    assert_true(find(0, BYTES(DW_CFA_offset | 6, 2)));
    assert_register(6, CFI_AT_OFFSET, -16);
    assert_true(find(0, BYTES(DW_CFA_offset_extended, 6, 0x80, 1)));
    assert_register(6, CFI_AT_OFFSET, -1024);
    assert_true(find(0, BYTES(DW_CFA_offset_extended_sf, 6, 0x7e)));
    assert_register(6, CFI_AT_OFFSET, 16);
    assert_true(find(0, BYTES(DW_CFA_GNU_negative_offset_extended, 6, 2)));
    assert_register(6, CFI_AT_OFFSET, 16);
    assert_true(find(0, BYTES(DW_CFA_val_offset, 7, 2)));
    assert_register(7, CFI_IS_OFFSET, -16);
    assert_true(find(0, BYTES(DW_CFA_val_offset_sf, 7, 0x7f)));
    assert_register(7, CFI_IS_OFFSET, 8);
    assert_true(find(0, BYTES(DW_CFA_register, 16, 5)));
    assert_register(16, CFI_IN_REGISTER, 5);
    assert_true(find(0, BYTES(DW_CFA_undefined, 16)));
    assert_register(16, CFI_UNDEFINED, 0);
    assert_true(find(0, BYTES(DW_CFA_same_value, 16)));
    assert_register(16, CFI_SAME, 0);
    assert_cfa(7, 8);
}

/* Signing a return address changes no row. */
static void test_signed_return_addresses(void **state)
{
    (void)state;
    static const uint8_t program[] = {DW_CFA_AARCH64_negate_ra_state,
                                      DW_CFA_AARCH64_negate_ra_state_with_pc, DW_CFA_offset | 6, 2};
    assert_true(find(0, program, sizeof program));
    assert_register(6, CFI_AT_OFFSET, -16);
    assert_register(16, CFI_AT_OFFSET, -8);
    assert_cfa(7, 8);
}

static void test_registers_by_expression(void **state)
{
    (void)state;
    static const uint8_t at[] = {DW_CFA_expression, 6, 2, DW_OP_breg6, 0};
    static const uint8_t is[] = {DW_CFA_val_expression, 3, 1, DW_OP_lit0};
    assert_true(find(0, at, sizeof at));
    assert_register(6, CFI_AT_EXPRESSION, 0);
    assert_ptr_equal(row.registers[6].expression.at, at + 3);
    assert_int_equal(bytes_left(&row.registers[6].expression), 2);
    assert_true(find(0, is, sizeof is));
    assert_register(3, CFI_IS_EXPRESSION, 0);
    assert_int_equal(bytes_left(&row.registers[3].expression), 1);
}

/* All instructions up to the advance beyond an address apply to it. */
static void test_rows(void **state)
{
    (void)state;
    static const uint8_t program[] = {DW_CFA_advance_loc | 1,
                                      DW_CFA_def_cfa_offset,
                                      16,
                                      DW_CFA_offset | 6,
                                      2,
                                      DW_CFA_advance_loc | 3,
                                      DW_CFA_def_cfa_register,
                                      6,
                                      DW_CFA_advance_loc1,
                                      200,
                                      DW_CFA_def_cfa,
                                      7,
                                      8};
    for (uint64_t offset = 0; offset < 300; offset++) {
        assert_true(find(offset, program, sizeof program));
        assert_cfa(offset >= 4 && offset < 204 ? 6 : 7, offset >= 1 && offset < 204 ? 16 : 8);
        assert_int_equal(row.registers[6].kind, offset >= 1 ? CFI_AT_OFFSET : CFI_SAME);
    }
}

static void test_advances(void **state)
{
    (void)state;
    static const struct {
        uint8_t program[8];
        uint64_t offset;
    } rows[] = {
        {{DW_CFA_advance_loc | 0x3f, DW_CFA_def_cfa_offset, 16}, 0x3f},
        {{DW_CFA_advance_loc1, 0xff, DW_CFA_def_cfa_offset, 16}, 0xff},
        {{DW_CFA_advance_loc2, 0x34, 0x12, DW_CFA_def_cfa_offset, 16}, 0x1234},
        {{DW_CFA_advance_loc4, 0x78, 0x56, 0x34, 0x12, DW_CFA_def_cfa_offset, 16}, 0x12345678},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (uint64_t factor = 1; factor <= 4; factor += 3) {
            const uint8_t *program = rows[i].program;
            struct cfi_entry *entry = made_entry(START, UINT64_MAX, common, sizeof common, program,
                                                 sizeof rows[i].program);
            entry->code_factor = factor;
            assert_true(cfi_find_row(entry, START + rows[i].offset * factor - 1, &row));
            assert_cfa(7, 8);
            assert_true(cfi_find_row(entry, START + rows[i].offset * factor, &row));
            assert_cfa(7, 16);
        }
    }
}

static void test_factors_of_the_data(void **state)
{
    (void)state;
    static const uint8_t program[] = {DW_CFA_offset | 6, 3, DW_CFA_def_cfa_offset, 24};
    struct cfi_entry *entry =
        made_entry(START, START + 1, common, sizeof common, program, sizeof program);
    entry->data_factor = -4;
    assert_true(cfi_find_row(entry, START, &row));
    assert_register(6, CFI_AT_OFFSET, -12);
    assert_register(16, CFI_AT_OFFSET, -4);
    assert_cfa(7, 24);
}

static void test_remember_and_restore(void **state)
{
    (void)state;
    static const uint8_t program[] = {DW_CFA_advance_loc | 1,
                                      DW_CFA_def_cfa_offset,
                                      16,
                                      DW_CFA_offset | 6,
                                      2, /* push rbp */
                                      DW_CFA_advance_loc | 1,
                                      DW_CFA_remember_state,
                                      DW_CFA_def_cfa_offset,
                                      8,
                                      DW_CFA_restore | 6, /* pop rbp; ret */
                                      DW_CFA_advance_loc | 1,
                                      DW_CFA_restore_state,
                                      DW_CFA_advance_loc | 1,
                                      DW_CFA_def_cfa_offset,
                                      32};
    static const int64_t offsets[] = {8, 16, 8, 16, 32};
    for (uint64_t i = 0; i < 5; i++) {
        assert_true(find(i, program, sizeof program));
        assert_cfa(7, offsets[i]);
        assert_int_equal(row.registers[6].kind, i == 1 || i > 2 ? CFI_AT_OFFSET : CFI_SAME);
    }
}

static void test_remembered_rows_are_a_stack(void **state)
{
    (void)state;
    static const uint8_t nested[] = {DW_CFA_def_cfa_offset,
                                     16,
                                     DW_CFA_remember_state,
                                     DW_CFA_def_cfa_expression,
                                     1,
                                     DW_OP_breg6,
                                     DW_CFA_remember_state,
                                     DW_CFA_def_cfa,
                                     3,
                                     48,
                                     DW_CFA_restore_state,
                                     DW_CFA_advance_loc | 1,
                                     DW_CFA_restore_state};
    assert_true(find(0, nested, sizeof nested));
    assert_true(row.cfa_is_expression);
    assert_true(find(1, nested, sizeof nested));
    assert_cfa(7, 16);
    /* Nothing was remembered, or more than the limit, which is beyond what compilers do. */
    assert_false(find(0, BYTES(DW_CFA_restore_state)));
    assert_false(find(0, BYTES(DW_CFA_remember_state, DW_CFA_restore_state, DW_CFA_restore_state)));
    uint8_t many[1000];
    memset(many, DW_CFA_remember_state, sizeof many);
    assert_true(find(0, many, 4));
    assert_false(find(0, many, sizeof many));
}

/* Restores the CIE's rule, not the previous one. */
static void test_restore_goes_back_to_the_common_rule(void **state)
{
    (void)state;
    static const uint8_t saved[] = {
        DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1, DW_CFA_offset | 3, 5, DW_CFA_undefined, 20};
    static const uint8_t program[] = {DW_CFA_same_value,
                                      3,
                                      DW_CFA_offset | 20,
                                      9,
                                      DW_CFA_offset | 6,
                                      2,
                                      DW_CFA_undefined,
                                      16,
                                      DW_CFA_advance_loc | 1,
                                      DW_CFA_restore | 3,
                                      DW_CFA_restore | 6,
                                      DW_CFA_restore_extended,
                                      16,
                                      DW_CFA_restore_extended,
                                      20};
    struct cfi_entry *entry =
        made_entry(START, START + 9, saved, sizeof saved, program, sizeof program);
    assert_true(cfi_find_row(entry, START, &row));
    assert_register(3, CFI_SAME, 0);
    assert_register(20, CFI_AT_OFFSET, -72);
    assert_register(16, CFI_UNDEFINED, 0);
    assert_true(cfi_find_row(entry, START + 1, &row));
    assert_register(3, CFI_AT_OFFSET, -40);
    assert_register(20, CFI_UNDEFINED, 0);
    assert_register(6, CFI_SAME, 0);
    assert_register(16, CFI_AT_OFFSET, -8);
}

/* An advance in the CIE's program does not count for the FDE's. */
static void test_the_common_program_ends_where_the_function_begins(void **state)
{
    (void)state;
    static const uint8_t advancing[] = {DW_CFA_advance_loc | 9, DW_CFA_def_cfa, 7, 24};
    static const uint8_t program[] = {DW_CFA_advance_loc | 2, DW_CFA_def_cfa_offset, 16};
    struct cfi_entry *entry =
        made_entry(START, START + 9, advancing, sizeof advancing, program, sizeof program);
    assert_true(cfi_find_row(entry, START + 1, &row));
    assert_cfa(7, 24);
    assert_true(cfi_find_row(entry, START + 2, &row));
    assert_cfa(7, 16);
}

static void test_what_changes_nothing(void **state)
{
    (void)state;
    assert_true(find(0, BYTES(DW_CFA_nop, DW_CFA_nop)));
    assert_cfa(7, 8);
    assert_true(find(0, BYTES(DW_CFA_GNU_args_size, 0x90, 1, DW_CFA_def_cfa_offset, 16)));
    assert_cfa(7, 16);
}

/* Vector registers and others that are not tracked: their rules are ignored. */
static void test_registers_out_of_range(void **state)
{
    (void)state;
    static const uint8_t numbers[][5] = {
        {REGISTERS_MAX, 0x80, 0x80, 0x80, 0}, {0x3f}, {0x7f}, {0xff, 0xff, 0xff, 0xff, 0x7f}};
    static const uint8_t lengths[] = {1, 1, 1, 5};
    static const uint8_t codes[] = {
        DW_CFA_offset_extended, DW_CFA_offset_extended_sf, DW_CFA_val_offset,
        DW_CFA_val_offset_sf,   DW_CFA_register,           DW_CFA_GNU_negative_offset_extended,
        DW_CFA_expression,      DW_CFA_val_expression,     DW_CFA_undefined,
        DW_CFA_same_value,      DW_CFA_restore_extended};
    struct cfi_row before;
    assert_true(find(0, NULL, 0));
    before = row;
    for (size_t i = 0; i < sizeof codes; i++) {
        for (size_t j = 0; j < 4; j++) {
            uint8_t program[16] = {codes[i]};
            memcpy(program + 1, numbers[j], lengths[j]);
            size_t bytes = 1u + lengths[j];
            if (codes[i] < DW_CFA_restore_extended || codes[i] > DW_CFA_same_value)
                program[bytes++] = 0; /* an operand more: a number, or an empty expression */
            assert_true(find(0, program, bytes));
            assert_memory_equal(row.registers, before.registers, sizeof row.registers);
        }
    }
    for (uint8_t number = REGISTERS_MAX; number < 0x40; number++)
        assert_true(find(
            0, BYTES((uint8_t)(DW_CFA_offset | number), 2, (uint8_t)(DW_CFA_restore | number))));
}

static void test_programs_cut_short(void **state)
{
    (void)state;
    assert_false(find(0, BYTES(DW_CFA_def_cfa)));
    assert_false(find(0, BYTES(DW_CFA_def_cfa, 7)));
    assert_false(find(0, BYTES(DW_CFA_def_cfa, 7, 0x80)));
    assert_false(find(0, BYTES(DW_CFA_offset | 6)));
    assert_false(find(0, BYTES(DW_CFA_offset_extended, 6)));
    assert_false(find(0, BYTES(DW_CFA_register, 6)));
    assert_false(find(0, BYTES(DW_CFA_undefined)));
    assert_false(find(0, BYTES(DW_CFA_advance_loc1)));
    assert_false(find(0, BYTES(DW_CFA_advance_loc2, 1)));
    assert_false(find(0, BYTES(DW_CFA_advance_loc4, 1, 0, 0)));
    assert_false(find(0, BYTES(DW_CFA_expression, 6, 3, DW_OP_breg6, 0)));
    assert_false(find(0, BYTES(DW_CFA_def_cfa_expression, 0xff, 0xff, 0xff, 0xff, 0x0f)));
    assert_false(find(0, BYTES(DW_CFA_GNU_args_size)));
    /* An error after the instructions that apply to the address is ignored. */
    assert_true(find(0, BYTES(DW_CFA_advance_loc | 1, DW_CFA_def_cfa, 7)));
    assert_false(find(1, BYTES(DW_CFA_advance_loc | 1, DW_CFA_def_cfa, 7)));
    /* An error in the CIE's program affects every address. */
    assert_false(cfi_find_row(
        made_entry(START, START + 1, BYTES(DW_CFA_def_cfa, 7), BYTES(DW_CFA_def_cfa, 7, 8)), START,
        &row));
}

static void test_unknown_instructions(void **state)
{
    (void)state;
    static const uint8_t known[] = {0x00, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09,
                                    0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12,
                                    0x13, 0x14, 0x15, 0x16, 0x2c, 0x2d, 0x2e, 0x2f};
    for (uint8_t code = 0; code < 0x40; code++) {
        uint8_t program[16] = {code, [9] = DW_CFA_nop};
        if (memchr(known, code, sizeof known))
            continue;
        assert_false(find(0, program, sizeof program));
    }
    /* The result is only written on success. */
    assert_true(find(0, BYTES(DW_CFA_def_cfa_offset, 16)));
    assert_false(find(0, BYTES(DW_CFA_def_cfa_offset, 24, 0x3f)));
    assert_cfa(7, 16);
}

/* Offsets whose product has more than 64 bits, and advances beyond the last address. */
static void test_overflows(void **state)
{
    (void)state;
    assert_true(find(0, BYTES(DW_CFA_offset_extended, 6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                              0xff, 0xff, 1, DW_CFA_def_cfa_offset_sf, 0x80, 0x80, 0x80, 0x80, 0x80,
                              0x80, 0x80, 0x80, 0x80, 0x7f)));
    assert_register(6, CFI_AT_OFFSET, 8);
    struct cfi_entry *entry =
        made_entry(UINT64_MAX - 2, UINT64_MAX, common, sizeof common,
                   BYTES(DW_CFA_advance_loc4, 0xff, 0xff, 0xff, 0xff, DW_CFA_nop));
    entry->code_factor = UINT64_MAX;
    cfi_find_row(entry, UINT64_MAX - 1, &row); /* whatever it says, it ends */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_common_program),
        cmocka_unit_test(test_where_the_cfa_is),
        cmocka_unit_test(test_cfa_by_expression),
        cmocka_unit_test(test_where_registers_are),
        cmocka_unit_test(test_signed_return_addresses),
        cmocka_unit_test(test_registers_by_expression),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_advances),
        cmocka_unit_test(test_factors_of_the_data),
        cmocka_unit_test(test_remember_and_restore),
        cmocka_unit_test(test_remembered_rows_are_a_stack),
        cmocka_unit_test(test_restore_goes_back_to_the_common_rule),
        cmocka_unit_test(test_the_common_program_ends_where_the_function_begins),
        cmocka_unit_test(test_what_changes_nothing),
        cmocka_unit_test(test_registers_out_of_range),
        cmocka_unit_test(test_programs_cut_short),
        cmocka_unit_test(test_unknown_instructions),
        cmocka_unit_test(test_overflows),
    };
    return cmocka_run_group_tests_name("cfi_row", tests, NULL, NULL);
}
