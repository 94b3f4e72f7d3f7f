/* A rule is made once for each address of a module. */
#include "make_cfi.h"
#include "unwind/rule_tables.h"

#include <errno.h>

static struct made_section eh;

/* Makes a module in which each byte of code after `first` is a function with its own CFA: sp + 8 +
 * 8 * its address. */
static void make_functions(struct module *module, uint32_t number, uint64_t first, size_t count)
{
    eh.length = 0;
    uint64_t cie = put_cie(&eh, &made_eh_form, BYTES(MADE_ENTRY_ROW));
    for (size_t i = 0; i < count; i++) {
        uint64_t offset = 8 * (first + i) + 8;
        put_fde(&eh, &made_eh_form, cie, MADE_ADDRESS + first + i, 1,
                BYTES(DW_CFA_def_cfa_offset, (uint8_t)(0x80 | (offset & 0x7f)),
                      (uint8_t)(0x80 | (offset >> 7 & 0x7f)), (uint8_t)(offset >> 14)));
    }
    make_module(module, NULL, &eh, NULL);
    module->number = number;
}

static void test_the_same_after_growth(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    struct module module;
    struct rule_tables tables = {0};
    make_functions(&module, 0, 0, COUNT);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            /* In another order each time. */
            size_t at = (i * 7 + round) % COUNT;
            const struct rule *rule = rule_tables_find(&tables, &module, MADE_ADDRESS + at);
            assert_non_null(rule);
            assert_int_equal(rule->kind, RULE_CALLER);
            assert_int_equal(rule->cfa.register_number, SP);
            assert_int_equal(rule->cfa.offset, 8 + 8 * at);
            /* The next call has the very same. */
            assert_ptr_equal(rule_tables_find(&tables, &module, MADE_ADDRESS + at), rule);
        }
        assert_int_equal(tables.items[0].tables[LOOKUP_RULE].used, COUNT);
    }
    assert_true(tables.items[0].tables[LOOKUP_RULE].slot_count >= 2 * COUNT);
    assert_true(tables.items[0].tables[LOOKUP_RULE].slot_count <= 8 * COUNT);
    rule_tables_free(&tables);
    assert_int_equal(tables.count, 0);
    made_module_free(&module);
}

/* Addresses with the same lower bits, like those of functions at page boundaries. */
static void test_addresses_that_are_alike(void **state)
{
    (void)state;
    enum { COUNT = 4096 };
    struct module module;
    struct rule_tables tables = {0};
    make_functions(&module, 0, 0, 1);
    for (uint64_t i = 0; i < COUNT; i++) {
        const struct rule *rule = rule_tables_find(&tables, &module, MADE_ADDRESS + (i << 32));
        assert_int_equal(rule->kind, i ? RULE_NONE : RULE_CALLER);
    }
    assert_int_equal(tables.items[0].tables[LOOKUP_RULE].used, COUNT);
    assert_int_equal(rule_tables_find(&tables, &module, MADE_ADDRESS)->kind, RULE_CALLER);
    rule_tables_free(&tables);
    made_module_free(&module);
}

static void test_modules_do_not_mix(void **state)
{
    (void)state;
    struct module one, two, none;
    struct rule_tables tables = {0};
    make_functions(&two, 40, 100, 200);
    make_functions(&one, 3, 0, 200);
    make_module(&none, NULL, NULL, NULL);
    none.number = 7;
    for (size_t round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < 300; i++) {
            uint64_t address = MADE_ADDRESS + i;
            assert_int_equal(rule_tables_find(&tables, &two, address)->kind,
                             i < 100 ? RULE_NONE : RULE_CALLER);
            assert_int_equal(rule_tables_find(&tables, &one, address)->kind,
                             i < 200 ? RULE_CALLER : RULE_NONE);
            assert_int_equal(rule_tables_find(&tables, &none, address)->kind, RULE_NONE);
        }
    }
    assert_int_equal(rule_tables_function(&tables, &two, MADE_ADDRESS + 150), MADE_ADDRESS + 150);
    assert_int_equal(rule_tables_function(&tables, &two, MADE_ADDRESS + 50), 0);
    assert_int_equal(rule_tables_function(&tables, &one, MADE_ADDRESS + 50), MADE_ADDRESS + 50);
    assert_int_equal(rule_tables_function(&tables, &none, MADE_ADDRESS + 50), 0);
    rule_tables_free(&tables);
    made_module_free(&one);
    made_module_free(&two);
    made_module_free(&none);
}

/* A module with the last address, for which "address + 1" looks like a free slot. */
static void test_the_last_address(void **state)
{
    (void)state;
    struct module module;
    struct rule_tables tables = {0};
    make_functions(&module, 0, 0, 1);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(rule_tables_find(&tables, &module, UINT64_MAX)->kind, RULE_NONE);
    assert_in_range(tables.items ? tables.items[0].tables[LOOKUP_RULE].used : 0, 0, 1);
    assert_int_equal(rule_tables_find(&tables, &module, MADE_ADDRESS)->kind, RULE_CALLER);
    rule_tables_free(&tables);
    made_module_free(&module);
}

static void test_the_start_of_a_function(void **state)
{
    (void)state;
    struct module module;
    struct rule_tables tables = {0};
    eh.length = 0;
    uint64_t cie = put_cie(&eh, &made_eh_form, BYTES(MADE_ENTRY_ROW));
    put_fde(&eh, &made_eh_form, cie, MADE_ADDRESS + 0x10, 0x20, BYTES(DW_CFA_nop));
    make_module(&module, NULL, &eh, NULL);
    assert_int_equal(rule_tables_function(&tables, &module, MADE_ADDRESS + 0x2f),
                     MADE_ADDRESS + 0x10);
    assert_int_equal(rule_tables_function(&tables, &module, MADE_ADDRESS + 0x30), 0);
    rule_tables_free(&tables);
    made_module_free(&module);
}

static void test_signal_trampolines(void **state)
{
    (void)state;
    enum {
        EARLY = MADE_SIGNAL_ENTRY_EARLY,
        CALL = MADE_SIGNAL_CALL,
        LENGTH = sizeof made_signal_return
    };
    /* With an entry, as glibc's on x86-64; without one, as musl's; with one of another kind. */
    enum { WITH_ENTRY = 0x104, WITHOUT_ENTRY = 0x200, OF_OTHER_KIND = 0x304, OTHER_CODE = 0x400 };
    static const uint64_t trampolines[] = {WITH_ENTRY, WITHOUT_ENTRY, OF_OTHER_KIND};
    static uint8_t code[MADE_CODE_BYTES];
    struct module module;
    struct rule_tables tables = {0};
    put_nops(code, sizeof code);
    for (size_t i = 0; i < sizeof trampolines / sizeof *trampolines; i++)
        memcpy(code + trampolines[i], made_signal_return, LENGTH);
    eh.length = 0;
    uint64_t cie = put_cie(&eh, &made_signal_form, BYTES(MADE_ENTRY_ROW));
    put_fde(&eh, &made_signal_form, cie, MADE_ADDRESS + WITH_ENTRY - EARLY, EARLY + LENGTH,
            BYTES(DW_CFA_nop));
    put_fde(&eh, &made_signal_form, cie, MADE_ADDRESS + OTHER_CODE, 10, BYTES(DW_CFA_nop));
    cie = put_cie(&eh, &made_eh_form, BYTES(MADE_ENTRY_ROW));
    put_fde(&eh, &made_eh_form, cie, MADE_ADDRESS + OF_OTHER_KIND - EARLY, EARLY + LENGTH,
            BYTES(DW_CFA_nop));
    make_module(&module, code, &eh, NULL);
    static const struct {
        uint64_t at;
        enum rule_kind kind;
    } rows[] = {
        /* By the address of "the call", if the entry has it, and at its instructions; a thread is
         * never within an instruction. */
        {WITH_ENTRY - 1, EARLY ? RULE_SIGNAL_FRAME : RULE_NONE},
        {WITH_ENTRY, RULE_SIGNAL_FRAME},
        {WITH_ENTRY + 1, RULE_CALLER},
        {WITH_ENTRY + CALL, RULE_SIGNAL_FRAME},
        {WITH_ENTRY + CALL + 1, RULE_CALLER},
        {WITH_ENTRY + LENGTH, RULE_NONE},
        {WITHOUT_ENTRY - 1, RULE_NONE},
        {WITHOUT_ENTRY, RULE_SIGNAL_FRAME},
        {WITHOUT_ENTRY + 1, RULE_NONE},
        {WITHOUT_ENTRY + CALL, RULE_SIGNAL_FRAME},
        {WITHOUT_ENTRY + CALL + 1, RULE_NONE},
        {OF_OTHER_KIND, RULE_CALLER},
        {OTHER_CODE, RULE_CALLER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(rule_tables_find(&tables, &module, MADE_ADDRESS + rows[i].at)->kind,
                         rows[i].kind);
    rule_tables_free(&tables);
    made_module_free(&module);
}

/* Fakes lookups by another process. */
struct played {
    struct lookups lookups;
    int err;
    unsigned asked[LOOKUP_KINDS];
};

static int play(struct lookups *lookups, struct module *module, const struct lookup *lookup,
                union lookup_answer *ret_answer)
{
    struct played *played = (struct played *)lookups;
    assert_int_equal(module->number, 3);
    played->asked[lookup->kind]++;
    if (played->err)
        return played->err;
    if (lookup->kind == LOOKUP_RULE || lookup->kind == LOOKUP_RETURNS)
        ret_answer->rule = (struct rule){.kind = RULE_CALLER, .cfa_offset = (int)lookup->kind};
    else if (lookup->kind == LOOKUP_FUNCTION)
        ret_answer->function = lookup->address - 1;
    else
        ret_answer->prologue = (struct lookup_prologue){{lookup->address - lookup->function}, 1};
    return 0;
}

static void assert_asked(const struct played *played, unsigned times)
{
    for (size_t i = 0; i < LOOKUP_KINDS; i++)
        assert_int_equal(played->asked[i], times);
}

/* Each kind and address is looked up once. */
static void test_somebody_else_looks_up(void **state)
{
    (void)state;
    struct module module = {.number = 3};
    struct played played = {.lookups = {.find = play}};
    struct rule_tables tables = {.lookups = &played.lookups};
    for (unsigned i = 0; i < 2; i++) {
        for (uint64_t address = 100; address < 110; address++) {
            const struct rule *rule = rule_tables_find(&tables, &module, address);
            assert_int_equal(rule->kind, RULE_CALLER);
            assert_int_equal(rule->cfa_offset, LOOKUP_RULE);
            assert_int_equal(rule_tables_function(&tables, &module, address), address - 1);
            assert_int_equal(rule_tables_returns(&tables, &module, address).cfa_offset,
                             LOOKUP_RETURNS);
            struct lookup_prologue prologue = rule_tables_prologue(&tables, &module, 90, address);
            assert_int_equal(prologue.count, 1);
            assert_int_equal(prologue.distances[0], address - 90);
        }
        assert_asked(&played, 10);
    }
    rule_tables_free(&tables);
}

/* Tables do not grow forever: a full table is cleared. */
static void test_a_full_table(void **state)
{
    (void)state;
    struct module module = {.number = 3};
    struct played played = {.lookups = {.find = play}};
    struct rule_tables tables = {.lookups = &played.lookups};
    const uint8_t code[1] = {0x90};
    for (uint64_t address = 1; address <= RULE_TABLE_MAX + 10; address++) {
        assert_int_equal(rule_tables_function(&tables, &module, address), address - 1);
        assert_int_equal(rule_tables_learn_generated(&tables, 0, address, address, code, 1), 0);
    }
    assert_int_equal(tables.items[3].tables[LOOKUP_FUNCTION].used, 10);
    assert_int_equal(tables.generated[0].used, 10);
    assert_true(rule_tables_bytes(&tables) < 1u << 20);
    assert_int_equal(rule_tables_function(&tables, &module, 1), 0); /* again */
    assert_int_equal(played.asked[LOOKUP_FUNCTION], RULE_TABLE_MAX + 11);
    assert_null(rule_tables_find_generated(&tables, 0, 1));
    assert_non_null(rule_tables_find_generated(&tables, 0, RULE_TABLE_MAX + 10));
    rule_tables_free(&tables);
}

static void assert_unread(struct rule_tables *tables, struct module *module)
{
    assert_int_equal(rule_tables_find(tables, module, 100)->kind, RULE_UNREAD);
    assert_int_equal(rule_tables_function(tables, module, 100), 0);
    assert_int_equal(rule_tables_returns(tables, module, 100).kind, RULE_UNREAD);
    assert_int_equal(rule_tables_prologue(tables, module, 90, 100).count, 0);
}

/* A permanent read failure of a module is remembered, but not a temporary one. */
static void test_what_cannot_be_read(void **state)
{
    (void)state;
    struct module module = {.number = 3};
    struct played played = {.lookups = {.find = play}, .err = -EAGAIN};
    struct rule_tables tables = {.lookups = &played.lookups};
    for (unsigned i = 1; i < 4; i++) {
        assert_unread(&tables, &module);
        assert_asked(&played, i);
    }
    played.err = -ENOEXEC;
    for (unsigned i = 0; i < 3; i++) {
        assert_unread(&tables, &module);
        assert_asked(&played, 4);
    }
    played.err = -ENOMEM;
    assert_null(rule_tables_find(&tables, &module, 101));
    assert_int_equal(rule_tables_function(&tables, &module, 101), 0);
    rule_tables_free(&tables);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_after_growth),
        cmocka_unit_test(test_addresses_that_are_alike),
        cmocka_unit_test(test_modules_do_not_mix),
        cmocka_unit_test(test_the_last_address),
        cmocka_unit_test(test_the_start_of_a_function),
        cmocka_unit_test(test_signal_trampolines),
        cmocka_unit_test(test_somebody_else_looks_up),
        cmocka_unit_test(test_a_full_table),
        cmocka_unit_test(test_what_cannot_be_read),
    };
    return cmocka_run_group_tests_name("rule_tables", tests, NULL, NULL);
}
