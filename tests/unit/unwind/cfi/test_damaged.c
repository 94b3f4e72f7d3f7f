/* Call frame information is untrusted data: whatever it says, unwinding by it ends, and only
 * touches the memory that it was given. Bytes are random, from a generator that gives the same ones
 * every time. Results are not checked, but a sanitizer build must stay silent. */
#include "unit.h"

#include "make_walk.h"

#include <errno.h>

#if defined __SANITIZE_ADDRESS__ || defined __aarch64__
#define ITERATIONS 40000u /* each takes several times as long, as it does in an emulator */
#else
#define ITERATIONS 200000u
#endif
#define RANDOM_BYTES 256u

enum { FUNCTIONS = 8, FUNCTION_BYTES = 0x20, CALLED_BYTES = 0x200, TABLE = 0x3000 };

static struct made_walk made;
static uint64_t state_of_random = 1;

static uint32_t draw(void)
{
    state_of_random = state_of_random * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(state_of_random >> 32);
}

/* Functions of most kinds. */
static void put_functions(struct made_section *section, const struct made_form *form,
                          uint64_t positions[FUNCTIONS])
{
    static const struct {
        uint8_t program[20], bytes;
    } programs[FUNCTIONS] = {
        {{DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | FP, 2,
          DW_CFA_advance_loc | 3, DW_CFA_def_cfa_register, FP, DW_CFA_advance_loc1, 20,
          DW_CFA_def_cfa, SP, 8},
         13},
        {{DW_CFA_def_cfa_expression, 12, BREG(SP), 8, DW_OP_bregx, PC, 0, DW_OP_lit15, DW_OP_and,
          DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus},
         14},
        {{DW_CFA_remember_state, DW_CFA_def_cfa_offset, 32, DW_CFA_advance_loc | 9,
          DW_CFA_restore_state},
         5},
        {{DW_CFA_def_cfa_expression, 3, BREG(FP), 0x78, DW_OP_deref, DW_CFA_expression, FP, 2,
          BREG(FP), 0},
         10},
        {{DW_CFA_register, RA, R5, DW_CFA_def_cfa_offset, 0}, 5},
        {{DW_CFA_advance_loc2, 8, 0, DW_CFA_def_cfa_sf, SP, 0x7c, DW_CFA_val_offset, SP, 0,
          DW_CFA_restore_extended, FP, DW_CFA_GNU_args_size, 8},
         13},
        {{DW_CFA_undefined, RA}, 2},
        {{DW_CFA_offset_extended_sf, FP, 2, DW_CFA_same_value, 3, DW_CFA_advance_loc4, 4, 0, 0, 0,
          DW_CFA_def_cfa_offset_sf, 0x7d},
         12},
    };
    uint64_t cie = put_cie(section, form, BYTES(MADE_ENTRY_ROW));
    for (size_t i = 0; i < FUNCTIONS; i++)
        positions[i] = put_fde(section, form, cie, MADE_ADDRESS + i * FUNCTION_BYTES,
                               FUNCTION_BYTES, programs[i].program, programs[i].bytes);
}

/* Fills the code with instructions that end paths: following them would take most of the time. */
static void end_ways(void)
{
#ifdef __aarch64__
    static const uint8_t trap[] = {0, 0, 0, 0}; /* udf */
#else
    static const uint8_t trap[] = {0xf4}; /* hlt */
#endif
    for (size_t i = 0; i <= CALLED_BYTES; i += 16)
        memcpy(made.module.image.memory + i, trap, sizeof trap);
}

/* A module with both sections, and the linker's table if `has_table`. */
static void make_whole(bool has_table)
{
    static struct made_section debug;
    uint64_t positions[FUNCTIONS];
    begin_module(&made);
    debug.is_debug_frame = true;
    debug.length = 0;
    put_functions(&debug, &made_debug_form, positions);
    put_functions(&made.eh, &made_eh_form, positions);
    end_module(&made);
    made_module_free(&made.module);
    make_module(&made.module, NULL, &made.eh, &debug);
    end_ways();
    if (!has_table)
        return;
    uint64_t header = MADE_ADDRESS + TABLE;
    made.module.unwind_table = (struct unwind_table){header, header + 12, FUNCTIONS};
    for (size_t i = 0; i < FUNCTIONS; i++) {
        int32_t row[2] = {(int32_t)(MADE_ADDRESS + i * FUNCTION_BYTES - header),
                          (int32_t)(positions[i] - header)};
        memcpy(made.module.image.memory + TABLE + 12 + i * sizeof row, row, sizeof row);
    }
}

/* Words that are often places on the stack or in code, so that frames follow one another. */
static void draw_stack(void)
{
    for (size_t i = 0; i < 64; i++) {
        uint32_t word = draw();
        made.words[i] = word & 1   ? code_at(word >> 8 & (CALLED_BYTES - 1))
                        : word & 2 ? word_at(word >> 8 & 0x3f)
                                   : word >> 2;
    }
    for (unsigned i = 0; i < architecture.register_count; i++)
        set_register(&made, i, made.words[draw() % 64]);
    if (draw() % 4 == 0)
        forget_register(&made, FP);
}

/* Unwinds from a random address of the module, without cached rules. */
static void walk_somewhere(void)
{
    uint64_t pc = code_at(draw() % (FUNCTIONS * FUNCTION_BYTES));
    made.max_depth = 32;
    made.snapshot.stack.bytes = 64 * 8;
    draw_stack();
    rule_tables_free(&made.tables);
    assert_int_equal(walk_from(&made, pc, draw() % 8), 0);
    assert_in_range(made.stack.depth, 1, made.max_depth);
    assert_int_equal(made.stack.addresses[0], pc);
    assert_in_range(made.hints.stack_bytes_used, 0, 64 * 8);
}

static void test_damaged_information(void **state)
{
    (void)state;
    for (unsigned has_table = 0; has_table < 2; has_table++) {
        make_whole(has_table);
        unsigned char *memory = made.module.image.memory;
        size_t bytes = made.module.image.bytes;
        unsigned char *right = malloc(bytes);
        assert_non_null(right);
        memcpy(right, memory, bytes);
        for (size_t i = 0; i < ITERATIONS / 2; i++) {
            size_t changed[4];
            for (size_t j = 0; j < 4; j++) {
                /* Mostly in the sections, seldom in the table. */
                changed[j] = draw() % 16 ? MADE_CODE_BYTES + draw() % (bytes - MADE_CODE_BYTES)
                                         : TABLE + draw() % 76;
                memory[changed[j]] = (unsigned char)draw();
            }
            walk_somewhere();
            for (size_t j = 0; j < 4; j++)
                memory[changed[j]] = right[changed[j]];
        }
        free(right);
        made_walk_free(&made);
    }
}

/* Only random bytes, as sections and as programs of a valid entry. */
static void test_random_information(void **state)
{
    (void)state;
    static struct made_section noise;
    struct rule rule;
    noise.length = RANDOM_BYTES;
    begin_module(&made);
    made.eh.length = RANDOM_BYTES;
    end_module(&made);
    made_module_free(&made.module);
    make_module(&made.module, NULL, &made.eh, &noise);
    end_ways();
    for (size_t i = 0; i < ITERATIONS / 2; i++) {
        unsigned char *memory = made.module.image.memory + MADE_CODE_BYTES;
        for (size_t j = 0; j < RANDOM_BYTES; j += 4) {
            uint32_t word = draw();
            memcpy(memory + j, &word, sizeof word);
            word = draw();
            memcpy(memory + RANDOM_BYTES + j, &word, sizeof word);
        }
        /* Otherwise hardly any would be read further. */
        uint32_t length = draw() % 64;
        memcpy(memory, &length, sizeof length);
        walk_somewhere();
        size_t common_bytes = draw() % 16, own_bytes = draw() % 48;
        rule = rule_make(made_entry(0, 0x100, memory, common_bytes, memory + 16, own_bytes),
                         draw() % 0x100);
        assert_in_range(rule.kind, RULE_CALLER, RULE_ON_THE_MOVE);
    }
    made_walk_free(&made);
}

/* Expressions of known operations, with arguments of any size. */
static void test_random_expressions(void **state)
{
    (void)state;
    static const uint8_t operations[] = {
        BREG(SP),      BREG(FP),     BREG(RA),     DW_OP_lit0 + 3, DW_OP_plus,  DW_OP_minus,
        DW_OP_and,     DW_OP_ge,     DW_OP_shl,    DW_OP_deref,    DW_OP_nop,   DW_OP_plus_uconst,
        DW_OP_const1s, DW_OP_constu, DW_OP_consts, DW_OP_const4s,  DW_OP_bregx, DW_OP_dup};
    size_t callers = 0;
    for (size_t i = 0; i < ITERATIONS; i++) {
        uint8_t program[40];
        size_t bytes = 2 + draw() % 20;
        program[0] = DW_CFA_def_cfa_expression;
        program[1] = (uint8_t)(bytes - 2);
        for (size_t j = 2; j < bytes; j++)
            program[j] = draw() % 3 ? operations[draw() % sizeof operations] : (uint8_t)draw();
        struct rule rule =
            rule_make(made_entry(0, 0x100, BYTES(MADE_ENTRY_ROW), program, bytes), draw() % 0x100);
        assert_true(rule.kind == RULE_CALLER || rule.kind == RULE_UNKNOWN_FRAME);
        callers += rule.kind == RULE_CALLER;
    }
    assert_in_range(callers, 100, ITERATIONS - 100); /* both happen */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damaged_information),
        cmocka_unit_test(test_random_information),
        cmocka_unit_test(test_random_expressions),
    };
    return cmocka_run_group_tests_name("cfi_damaged", tests, NULL, NULL);
}
