/* From a row of call frame information to a rule. */
#include "make_cfi.h"
#include "unwind/rule.h"

#define START 0x1000u

static const uint8_t common[] = {MADE_ENTRY_ROW};

static struct rule rule_of(uint64_t address, const uint8_t *program, size_t bytes)
{
    return rule_make(made_entry(START, START + 0x1000, common, sizeof common, program, bytes),
                     address);
}
#define RULE(...) rule_of(START, BYTES(__VA_ARGS__))

static void assert_place(const struct rule_place *place, unsigned number, bool is_in_memory,
                         int32_t offset)
{
    assert_int_equal(place->register_number, number);
    assert_int_equal(place->is_in_memory, is_in_memory);
    assert_int_equal(place->offset, offset);
}

static void assert_unknown(struct rule rule)
{
    assert_int_equal(rule.kind, RULE_UNKNOWN_FRAME);
}

/* At the beginning of a function, and after it has set up a frame pointer. */
static void test_plain_rules(void **state)
{
    (void)state;
    struct rule rule = rule_of(START, NULL, 0);
    assert_int_equal(rule.kind, RULE_CALLER);
    assert_place(&rule.cfa, SP, false, 8);
    assert_int_equal(rule.cfa_offset, 0);
    assert_place(&rule.return_address, RULE_CFA, true, -8);
    assert_true(rule.has_frame_pointer);
    assert_place(&rule.frame_pointer, FP, false, 0);

    rule = RULE(DW_CFA_def_cfa, FP, 16, DW_CFA_offset | FP, 2, DW_CFA_offset | 3, 3);
    assert_int_equal(rule.kind, RULE_CALLER);
    assert_place(&rule.cfa, FP, false, 16);
    assert_place(&rule.return_address, RULE_CFA, true, -8);
    assert_true(rule.has_frame_pointer);
    assert_place(&rule.frame_pointer, RULE_CFA, true, -16);

    rule = RULE(DW_CFA_def_cfa, R10, 0);
    assert_int_equal(rule.kind, RULE_CALLER);
    assert_place(&rule.cfa, R10, false, 0);
}

static void test_frame_pointers(void **state)
{
    (void)state;
    struct rule rule = RULE(DW_CFA_undefined, FP);
    assert_int_equal(rule.kind, RULE_CALLER);
    assert_false(rule.has_frame_pointer);
    rule = RULE(DW_CFA_register, FP, 3);
    assert_true(rule.has_frame_pointer);
    assert_place(&rule.frame_pointer, 3, false, 0);
    rule = RULE(DW_CFA_val_offset, FP, 2);
    assert_place(&rule.frame_pointer, RULE_CFA, false, -16);
    assert_unknown(RULE(DW_CFA_val_expression, FP, 2, BREG(SP), 0));
    assert_unknown(RULE(DW_CFA_register, FP, REGISTERS_MAX));
}

static void test_return_addresses(void **state)
{
    (void)state;
    /* Undefined, as in _start and clone: there is no caller. */
    struct rule rule = RULE(DW_CFA_undefined, RA);
    assert_int_equal(rule.kind, RULE_FIRST_FRAME);
    /* vfork keeps it in a register, because the child would overwrite it. */
    rule = RULE(DW_CFA_register, RA, R5, DW_CFA_def_cfa_offset, 0);
    assert_int_equal(rule.kind, RULE_CALLER);
    assert_place(&rule.return_address, R5, false, 0);
    assert_place(&rule.cfa, SP, false, 0);
    rule = RULE(DW_CFA_offset | RA, 3);
    assert_place(&rule.return_address, RULE_CFA, true, -24);
    assert_unknown(RULE(DW_CFA_val_expression, RA, 2, BREG(BASE), 0));
    assert_unknown(RULE(DW_CFA_register, RA, 0x80, 1));
}

static void test_return_registers(void **state)
{
    (void)state;
    static const uint8_t own[] = {DW_CFA_same_value, PC};
    struct cfi_entry *entry = made_entry(START, START + 1, common, sizeof common, own, sizeof own);
    /* A return address in the program counter itself says nothing. */
    entry->return_register = PC;
    assert_unknown(rule_make(entry, START));
    entry->return_register = 3; /* still in there, as in a leaf of other architectures */
    struct rule rule = rule_make(entry, START);
    assert_int_equal(rule.kind, RULE_CALLER);
    assert_place(&rule.return_address, 3, false, 0);
    entry->return_register = REGISTERS_MAX;
    assert_unknown(rule_make(entry, START));
    entry->return_register = UINT64_MAX;
    assert_unknown(rule_make(entry, START));
}

/* Signal frames, whether made by the kernel or not: the caller was interrupted, at any instruction,
 * and has its own stack pointer. */
static void test_signal_frames(void **state)
{
    (void)state;
    static const uint8_t own[] = {DW_CFA_def_cfa_expression, 3,  BREG(SP), 16,       DW_OP_deref,
                                  DW_CFA_expression,         RA, 2,        BREG(SP), 24,
                                  DW_CFA_expression,         SP, 2,        BREG(SP), 16};
    struct cfi_entry *entry = made_entry(START, START + 9, common, sizeof common, own, sizeof own);
    assert_int_equal(rule_make(entry, START).kind, RULE_ON_THE_MOVE);
    entry->is_signal_frame = true;
    struct rule rule = rule_make(entry, START);
    assert_int_equal(rule.kind, RULE_CALLER);
    assert_true(rule.caller_is_exact && rule.may_leave_stack);
    assert_place(&rule.cfa, SP, true, 16);
    assert_place(&rule.return_address, SP, true, 24);
    /* If its stack pointer is elsewhere, no rule can express it. */
    static const uint8_t elsewhere[] = {DW_CFA_offset | SP, 3};
    entry = made_entry(START, START + 9, common, sizeof common, elsewhere, sizeof elsewhere);
    entry->is_signal_frame = true;
    assert_unknown(rule_make(entry, START));
    entry->is_signal_frame = false;
    rule = RULE(DW_CFA_nop);
    assert_false(rule.caller_is_exact || rule.may_leave_stack);
}

#ifdef __x86_64__

/* The PLT, whose rule is an expression only on x86-64: from byte 11 of an entry of 16 bytes on, its
 * second instruction has pushed a number. */
static void test_entries_of_the_plt(void **state)
{
    (void)state;
    static const uint8_t program[] = {DW_CFA_def_cfa_expression,
                                      11,
                                      DW_OP_breg7,
                                      8,
                                      DW_OP_breg16,
                                      0,
                                      DW_OP_lit15,
                                      DW_OP_and,
                                      DW_OP_lit11,
                                      DW_OP_ge,
                                      DW_OP_lit3,
                                      DW_OP_shl,
                                      DW_OP_plus};
    for (uint64_t at = 0; at < 64; at++) {
        struct rule rule = rule_of(START + at, program, sizeof program);
        assert_int_equal(rule.kind, RULE_CALLER);
        assert_place(&rule.cfa, SP, false, at % 16 >= 11 ? 16 : 8);
        assert_int_equal(rule.cfa_offset, 0);
        assert_place(&rule.return_address, RULE_CFA, true, -8);
    }
}

#endif

/* gcc's main with vectors on its stack: the CFA was pushed, and the frame pointer register points
 * to the saved frame pointer. */
static void test_realigned_stacks(void **state)
{
    (void)state;
    struct rule rule = RULE(DW_CFA_def_cfa_expression, 3, BREG(FP), 0x78, DW_OP_deref,
                            DW_CFA_expression, FP, 2, BREG(FP), 0);
    assert_int_equal(rule.kind, RULE_CALLER);
    assert_place(&rule.cfa, FP, true, -8);
    assert_int_equal(rule.cfa_offset, 0);
    assert_true(rule.has_frame_pointer);
    assert_place(&rule.frame_pointer, FP, true, 0);
    /* With an offset added to the loaded value. */
    rule = RULE(DW_CFA_def_cfa_expression, 5, BREG(SP), 16, DW_OP_deref, DW_OP_plus_uconst, 8);
    assert_place(&rule.cfa, SP, true, 16);
    assert_int_equal(rule.cfa_offset, 8);
}

/* The rule of an expression for the CFA. */
static struct rule rule_of_cfa(const uint8_t *operations, size_t count)
{
    uint8_t program[64] = {DW_CFA_def_cfa_expression, (uint8_t)count};
    memcpy(program + 2, operations, count);
    return rule_of(START, program, count + 2);
}
#define CFA(...) rule_of_cfa(BYTES(__VA_ARGS__))

static void test_operations(void **state)
{
    (void)state;
    static const struct {
        uint8_t operations[16], count;
        int32_t offset; /* of the stack pointer */
    } rows[] = {
        {{BREG(SP), 0x7f}, 2, -1},
        {{DW_OP_bregx, SP, 8}, 3, 8},
        {{BREG(SP), 0, DW_OP_plus_uconst, 0x80, 1}, 5, 128},
        {{BREG(SP), 0, DW_OP_nop, DW_OP_const1u, 0xff, DW_OP_plus}, 6, 255},
        {{BREG(SP), 0, DW_OP_const1s, 0xff, DW_OP_plus}, 5, -1},
        {{BREG(SP), 0, DW_OP_const2u, 0xff, 0xff, DW_OP_plus}, 6, 0xffff},
        {{BREG(SP), 0, DW_OP_const2s, 0xfe, 0xff, DW_OP_plus}, 6, -2},
        {{BREG(SP), 0, DW_OP_const4u, 0, 0, 1, 0, DW_OP_plus}, 8, 0x10000},
        {{BREG(SP), 0, DW_OP_const4s, 0xfd, 0xff, 0xff, 0xff, DW_OP_plus}, 8, -3},
        {{BREG(SP), 0, DW_OP_constu, 0x90, 1, DW_OP_plus}, 6, 144},
        {{BREG(SP), 0, DW_OP_consts, 0x70, DW_OP_plus}, 5, -16},
        {{BREG(SP), 9, DW_OP_lit31, DW_OP_minus}, 4, -22},
        {{DW_OP_lit31, BREG(SP), 1, DW_OP_plus}, 4, 32},
        {{BREG(SP), 0, DW_OP_lit2, DW_OP_lit5, DW_OP_ge, DW_OP_plus}, 6, 0},
        {{BREG(SP), 0, DW_OP_lit5, DW_OP_lit5, DW_OP_ge, DW_OP_plus}, 6, 1},
        {{BREG(SP), 0, DW_OP_const1s, 0xff, DW_OP_lit5, DW_OP_ge, DW_OP_plus}, 7, 0},
        {{BREG(SP), 0, DW_OP_lit1, DW_OP_lit5, DW_OP_plus, DW_OP_plus}, 6, 6},
        {{BREG(SP), 0, DW_OP_lit1, DW_OP_const1u, 64, DW_OP_shl, DW_OP_plus}, 7, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rule rule = rule_of_cfa(rows[i].operations, rows[i].count);
        assert_int_equal(rule.kind, RULE_CALLER);
        assert_place(&rule.cfa, SP, false, rows[i].offset);
    }
}

static void test_registers_that_callers_have_unchanged(void **state)
{
    (void)state;
    static const uint8_t own[] = {DW_CFA_nop};
    uint32_t all = RULE(DW_CFA_nop).kept;
    assert_int_equal(all & 0xffff, 0xffff);
    assert_int_equal(all >> RA & 1, 0);
    assert_int_equal(RULE(DW_CFA_offset | 3, 2).kept, all & ~(1u << 3));
    assert_int_equal(RULE(DW_CFA_undefined, 12).kept, all & ~(1u << 12));
    assert_int_equal(RULE(DW_CFA_register, 12, 13).kept, all & ~(1u << 12));
    /* Where a call leaves its return address. */
    struct cfi_entry *entry = made_entry(START, START + 1, common, sizeof common, own, sizeof own);
    entry->return_register = 12;
    assert_int_equal(rule_make(entry, START).kept >> 12 & 1, 0);
}

/* OpenSSL's bn_mul_mont keeps its caller's stack pointer behind an array on its stack. */
static void test_a_cfa_with_an_index(void **state)
{
    (void)state;
    struct rule rule = CFA(BREG(SP), 8, BREG(R9), 2, DW_OP_lit8, DW_OP_mul, DW_OP_plus, DW_OP_deref,
                           DW_OP_plus_uconst, 8);
    assert_int_equal(rule.kind, RULE_CALLER);
    assert_place(&rule.cfa, SP, true, 24);
    assert_int_equal(rule.cfa_index, 9);
    assert_int_equal(rule.cfa_scale, 8);
    assert_int_equal(rule.cfa_offset, 8);
    rule = CFA(BREG(R9), 0, DW_OP_lit8, DW_OP_mul, DW_OP_lit5, DW_OP_plus, BREG(SP), 1, DW_OP_plus);
    assert_place(&rule.cfa, SP, false, 6);
    assert_int_equal(rule.cfa_index, 9);
    assert_int_equal(CFA(BREG(SP), 8).cfa_scale, 0);
    assert_int_equal(CFA(BREG(SP), 8, DW_OP_lit8, BREG(R9), 0, DW_OP_mul, DW_OP_plus).cfa_index, 9);
    /* Two indexes, or one that is subtracted, or with too large a scale. */
    assert_unknown(
        CFA(BREG(R9), 0, DW_OP_lit8, DW_OP_mul, BREG(R9), 0, DW_OP_lit8, DW_OP_mul, DW_OP_plus));
    assert_unknown(CFA(BREG(SP), 8, BREG(R9), 0, DW_OP_lit8, DW_OP_mul, DW_OP_minus));
    assert_unknown(CFA(BREG(SP), 8, BREG(R9), 0, DW_OP_const2u, 0, 1, DW_OP_mul, DW_OP_plus));
    assert_unknown(CFA(BREG(SP), 8, BREG(R9), 0, DW_OP_lit0, DW_OP_mul, DW_OP_plus));
    assert_unknown(RULE(DW_CFA_expression, FP, 7, BREG(SP), 8, BREG(R9), 0, DW_OP_lit8, DW_OP_mul,
                        DW_OP_plus));
}

static void test_expressions_that_no_rule_can_say(void **state)
{
    (void)state;
    assert_unknown(CFA(DW_OP_nop));                             /* nothing */
    assert_unknown(CFA(DW_OP_lit8));                            /* a constant */
    assert_unknown(CFA(DW_OP_bregx, PC, 8));                    /* as much */
    assert_unknown(CFA(BREG(SP), 8, BREG(SP), 0));              /* two values */
    assert_unknown(CFA(BREG(SP), 8, BREG(FP), 0, DW_OP_plus));  /* two registers */
    assert_unknown(CFA(DW_OP_lit8, BREG(SP), 0, DW_OP_minus));  /* 8 - sp */
    assert_unknown(CFA(BREG(SP), 0, DW_OP_lit15, DW_OP_and));   /* of a register */
    assert_unknown(CFA(BREG(SP), 0, DW_OP_lit8, DW_OP_mul));    /* no stack pointer */
    assert_unknown(CFA(BREG(SP), 0, DW_OP_deref, DW_OP_deref)); /* twice */
    assert_unknown(CFA(DW_OP_lit8, DW_OP_deref));               /* no part of the stack */
    assert_unknown(CFA(DW_OP_deref));                           /* of nothing */
    assert_unknown(CFA(BREG(SP), 0, DW_OP_plus));               /* one value */
    assert_unknown(CFA(DW_OP_plus_uconst, 8));                  /* none */
    assert_unknown(CFA(DW_OP_bregx, REGISTERS_MAX, 0));         /* no such register */
    assert_unknown(CFA(DW_OP_bregx, 0x80 | SP, 2, 0));          /* 256 more than that */
    assert_unknown(CFA(BREG(SP), 0, DW_OP_lit1, DW_OP_or));     /* unknown */
    assert_unknown(CFA(BREG(SP), 0, DW_OP_dup, DW_OP_drop));    /* unknown */
    assert_unknown(CFA(BREG(SP), 0, DW_OP_skip, 0, 0));         /* and it ends */
    assert_unknown(CFA(BREG(SP), 0x80));                        /* cut short */
    assert_unknown(CFA(BREG(SP), 0, DW_OP_plus_uconst));        /* cut short */
    assert_unknown(CFA(BREG(SP), 0, DW_OP_const4u, 1, 2, 3));   /* cut short */
    assert_unknown(CFA(DW_OP_lit1, DW_OP_lit1, DW_OP_lit1, DW_OP_lit1, DW_OP_lit1, DW_OP_lit1,
                       DW_OP_lit1, DW_OP_lit1, DW_OP_lit1, DW_OP_lit1)); /* too many */
    /* For the location of a register, only register + offset is supported. */
    assert_unknown(RULE(DW_CFA_expression, FP, 3, BREG(FP), 0, DW_OP_deref));
    assert_unknown(RULE(DW_CFA_expression, RA, 1, DW_OP_lit0));
}

/* A caller's stack pointer that is not the CFA, as in longjmp, which will continue there. */
static void test_code_on_the_move(void **state)
{
    (void)state;
    assert_int_equal(RULE(DW_CFA_val_offset, SP, 1).kind, RULE_ON_THE_MOVE);
    assert_int_equal(RULE(DW_CFA_offset | SP, 2).kind, RULE_ON_THE_MOVE);
    assert_int_equal(RULE(DW_CFA_register, SP, 6).kind, RULE_ON_THE_MOVE);
    assert_int_equal(RULE(DW_CFA_val_offset, SP, 0).kind, RULE_CALLER);
}

static void test_registers_that_no_rule_can_say(void **state)
{
    (void)state;
    assert_unknown(RULE(DW_CFA_def_cfa, REGISTERS_MAX, 8));
    assert_unknown(RULE(DW_CFA_def_cfa, 0xff, 1, 8)); /* RULE_CFA's own number */
    /* A row that can't be computed. */
    assert_unknown(RULE(DW_CFA_high_user));
}

/* Rules have offsets of 32 bits. */
static void test_far_offsets(void **state)
{
    (void)state;
    /* 2^31 - 1, 2^31, -2^31, -2^31 - 1 as operands */
    struct rule rule = RULE(DW_CFA_def_cfa, SP, 0xff, 0xff, 0xff, 0xff, 7);
    assert_place(&rule.cfa, SP, false, INT32_MAX);
    assert_unknown(RULE(DW_CFA_def_cfa, SP, 0x80, 0x80, 0x80, 0x80, 8));
    rule = CFA(BREG(SP), 0x80, 0x80, 0x80, 0x80, 0x78);
    assert_place(&rule.cfa, SP, false, INT32_MIN);
    assert_unknown(CFA(BREG(SP), 0xff, 0xff, 0xff, 0xff, 0x77));
    assert_unknown(CFA(BREG(SP), 0, DW_OP_deref, DW_OP_plus_uconst, 0x80, 0x80, 0x80, 0x80, 8));
    assert_unknown(RULE(DW_CFA_offset_extended, RA, 0x81, 0x80, 0x80, 0x80, 1));
    assert_unknown(RULE(DW_CFA_offset_extended, FP, 0x81, 0x80, 0x80, 0x80, 1));
    rule = RULE(DW_CFA_offset_extended, FP, 0x80, 0x80, 0x80, 0x80, 1);
    assert_place(&rule.frame_pointer, RULE_CFA, true, INT32_MIN);
    /* The register's number is not cut to 8 bits. */
    assert_unknown(RULE(DW_CFA_register, RA, 0x85, 2));
}

#ifdef __aarch64__

/* A leaf saves nothing; signing the address does not change where it is. */
static void test_a_return_address_in_the_link_register(void **state)
{
    (void)state;
    struct rule rule = RULE(DW_CFA_def_cfa_offset, 0, DW_CFA_same_value, LR);
    assert_int_equal(rule.kind, RULE_CALLER);
    assert_place(&rule.cfa, SP, false, 0);
    assert_place(&rule.return_address, LR, false, 0);
    assert_int_equal(rule.kept >> LR & 1, 0);
    rule = RULE(DW_CFA_AARCH64_negate_ra_state, DW_CFA_def_cfa_offset, 32, DW_CFA_same_value, LR);
    assert_int_equal(rule.kind, RULE_CALLER);
    assert_place(&rule.cfa, SP, false, 32);
    assert_place(&rule.return_address, LR, false, 0);
}

/* As in the dynamic linker: the code that jumped there had saved the return address. */
static void test_a_return_address_above_the_cfa(void **state)
{
    (void)state;
    struct rule rule = RULE(DW_CFA_def_cfa_offset, 32, DW_CFA_offset_extended_sf, LR, 0x7f,
                            DW_CFA_offset | FP, 2, DW_CFA_offset | BASE, 3);
    assert_int_equal(rule.kind, RULE_CALLER);
    assert_place(&rule.cfa, SP, false, 32);
    assert_int_equal(rule.cfa_offset, 16);
    assert_place(&rule.return_address, RULE_CFA, true, -8);
    assert_place(&rule.frame_pointer, RULE_CFA, true, -32);
    assert_int_equal(rule.base_pointer_offset, -40);
    /* Up to 256 bytes above it. */
    rule = RULE(DW_CFA_offset_extended_sf, LR, 0x60);
    assert_place(&rule.return_address, RULE_CFA, true, -8);
    rule = RULE(DW_CFA_offset_extended_sf, LR, 0x5f);
    assert_place(&rule.return_address, RULE_CFA, true, 264);
    /* Code that a signal interrupted did not make a call. */
    static const uint8_t own[] = {DW_CFA_offset_extended_sf, LR, 0x7f};
    struct cfi_entry *entry = made_entry(START, START + 8, common, sizeof common, own, sizeof own);
    entry->is_signal_frame = true;
    rule = rule_make(entry, START);
    assert_place(&rule.return_address, RULE_CFA, true, 8);
}

/* At the first instruction, the row lacks what was saved before it; the next row has it. */
static void test_the_first_instruction_before_a_cfa_that_is_too_low(void **state)
{
    (void)state;
    static const uint8_t own[] = {DW_CFA_def_cfa_offset,
                                  0,
                                  DW_CFA_same_value,
                                  LR,
                                  DW_CFA_advance_loc | 4,
                                  DW_CFA_offset_extended_sf,
                                  LR,
                                  0x7f};
    for (unsigned at = 0; at < 8; at++) {
        struct rule rule = rule_of(START + at, own, sizeof own);
        assert_int_equal(rule.kind, RULE_CALLER);
        if (at > 0 && at < 4) {
            assert_int_equal(rule.cfa_offset, 0);
            assert_place(&rule.return_address, LR, false, 0);
        } else {
            assert_int_equal(rule.cfa_offset, 16);
            assert_place(&rule.return_address, RULE_CFA, true, -8);
        }
    }
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_rules),
        cmocka_unit_test(test_frame_pointers),
        cmocka_unit_test(test_return_addresses),
        cmocka_unit_test(test_return_registers),
        cmocka_unit_test(test_a_cfa_with_an_index),
        cmocka_unit_test(test_registers_that_callers_have_unchanged),
        cmocka_unit_test(test_signal_frames),
#ifdef __x86_64__
        cmocka_unit_test(test_entries_of_the_plt),
#elif defined __aarch64__
        cmocka_unit_test(test_a_return_address_in_the_link_register),
        cmocka_unit_test(test_a_return_address_above_the_cfa),
        cmocka_unit_test(test_the_first_instruction_before_a_cfa_that_is_too_low),
#endif
        cmocka_unit_test(test_realigned_stacks),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_expressions_that_no_rule_can_say),
        cmocka_unit_test(test_code_on_the_move),
        cmocka_unit_test(test_registers_that_no_rule_can_say),
        cmocka_unit_test(test_far_offsets),
    };
    return cmocka_run_group_tests_name("rule", tests, NULL, NULL);
}
