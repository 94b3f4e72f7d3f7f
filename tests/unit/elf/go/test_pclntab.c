/* The function table of Go programs, built by hand in each of its formats. */
#include "make_pclntab.h"

#include <elf.h>

#define FORMS 4

static const struct made_function functions[] = {
    {"main.main", 0x40, 24, {10, 12}, false, false, false, 0},
    {"main.(*Server).handle", 0x1000 - 0x140, 0x12345, {100, 90}, true, false, true, 0},
    {"foreign", 0x60, 0, {0, 0}, false, true, false, 0},
    {"main.F[...]", 0xa0, 8, {200, 300}, false, false, false, 0},
};
#define COUNT (sizeof functions / sizeof *functions)

static void open_made(struct made_go *made, enum pclntab_form form, struct pclntab *table)
{
    make_go(made, form, functions, COUNT);
    assert_true(pclntab_open(table, &made->module));
    assert_int_equal(table->form, form);
    assert_int_equal(table->function_count, COUNT);
}

static void assert_line(const struct pclntab *table, const struct pclntab_function *function,
                        uint64_t address, uint32_t expected)
{
    char file[PCLNTAB_STRING_MAX];
    uint32_t line;
    assert_true(pclntab_line(table, function, address, file, &line));
    assert_string_equal(file, "/go/main.go");
    assert_int_equal(line, expected);
}

static void assert_function(const struct pclntab *table, const struct made_function *made,
                            uint64_t start)
{
    struct pclntab_function function;
    char name[PCLNTAB_STRING_MAX];
    uint32_t bytes;
    uint64_t last = start + made->code_bytes - 1, begin;
    for (uint64_t address = start; address <= last; address += address < last ? last - start : 1) {
        assert_true(pclntab_find(table, address, &function));
        assert_int_equal(function.start, start);
        assert_int_equal(function.end, last + 1);
        assert_true(pclntab_name(table, function.name, name));
        assert_string_equal(name, made->name);
    }
    assert_int_equal(function.sets_stack_pointer,
                     made->sets_stack_pointer && table->form > PCLNTAB_1_2);
    assert_int_equal(pclntab_frame_bytes(table, &function, start, &bytes), !made->is_foreign);
    if (made->is_foreign)
        return;
    assert_int_equal(bytes, 0);
    assert_true(pclntab_frame_bytes(table, &function, start + MADE_GO_QUANTUM, &bytes));
    assert_int_equal(bytes, made->frame_bytes);
    assert_true(pclntab_frame_bytes(table, &function, last, &bytes));
    assert_int_equal(bytes, made->frame_bytes);
    assert_int_equal(pclntab_frame_begin(table, &function, &begin, &bytes), made->frame_bytes > 0);
    if (made->frame_bytes) {
        assert_int_equal(begin, start + MADE_GO_QUANTUM);
        assert_int_equal(bytes, made->frame_bytes);
    }
    assert_line(table, &function, start, made->lines[0]);
    assert_line(table, &function, start + made->code_bytes / 2 - 1, made->lines[0]);
    assert_line(table, &function, start + made->code_bytes / 2, made->lines[1]);
    assert_line(table, &function, last, made->lines[1]);
}

static void test_every_form(void **state)
{
    (void)state;
    for (unsigned form = 0; form < FORMS; form++) {
        struct made_go made;
        struct pclntab table;
        open_made(&made, (enum pclntab_form)form, &table);
        uint64_t start = MADE_GO_CODE;
        for (size_t i = 0; i < COUNT; i++) {
            assert_function(&table, &functions[i], start);
            start += functions[i].code_bytes;
        }
        struct pclntab_function function;
        assert_false(pclntab_find(&table, MADE_GO_CODE - 1, &function));
        assert_false(pclntab_find(&table, start, &function));
        assert_false(pclntab_find(&table, 0, &function));
        assert_false(pclntab_find(&table, UINT64_MAX, &function));
        made_go_free(&made);
    }
}

static void test_inlined_calls(void **state)
{
    (void)state;
    for (unsigned form = PCLNTAB_1_18; form < FORMS; form++) {
        struct made_go made;
        struct pclntab table;
        struct pclntab_function function;
        struct pclntab_inlined inlined;
        char name[PCLNTAB_STRING_MAX];
        open_made(&made, (enum pclntab_form)form, &table);
        uint64_t start = MADE_GO_CODE + functions[0].code_bytes;
        uint64_t half = start + functions[1].code_bytes / 2;
        assert_true(pclntab_find(&table, start, &function));
        assert_true(pclntab_inlined(&table, &function, half - 1, &inlined));
        assert_int_equal(inlined.call_address, start + 1);
        assert_true(pclntab_name(&table, inlined.name, name));
        assert_string_equal(name, "main.inlined");
        assert_false(pclntab_inlined(&table, &function, half, &inlined));
        assert_true(pclntab_find(&table, MADE_GO_CODE, &function));
        assert_false(pclntab_inlined(&table, &function, MADE_GO_CODE, &inlined));
        made_go_free(&made);
    }
}

/* An inlined call whose address is behind its function's end. */
static void test_an_inlined_call_that_is_elsewhere(void **state)
{
    (void)state;
    struct made_go made;
    struct pclntab table;
    struct pclntab_function function;
    struct pclntab_inlined inlined;
    open_made(&made, PCLNTAB_1_20, &table);
    put_go32(&made, MADE_GO_INLINED + 0x10 + 8, functions[1].code_bytes);
    assert_true(pclntab_find(&table, MADE_GO_CODE + functions[0].code_bytes, &function));
    assert_false(pclntab_inlined(&table, &function, function.start, &inlined));
    made_go_free(&made);
}

/* From Go 1.27 on, the record gives the types' length too, not only their bounds. */
static void test_inlined_calls_of_go_1_27(void **state)
{
    (void)state;
    struct made_go made;
    struct pclntab table;
    struct pclntab_function function;
    struct pclntab_inlined inlined;
    make_go(&made, PCLNTAB_1_20, functions, COUNT);
    put_go64(&made, MADE_GO_MODULE + 8 * 37, MADE_GO_DATA);
    put_go64(&made, MADE_GO_MODULE + 8 * 38, 0x100);
    put_go64(&made, MADE_GO_MODULE + 8 * 40, 0x200);
    put_go64(&made, MADE_GO_MODULE + 8 * 43, MADE_GO_INLINED);
    assert_true(pclntab_open(&table, &made.module));
    assert_true(pclntab_find(&table, MADE_GO_CODE + functions[0].code_bytes, &function));
    assert_true(pclntab_inlined(&table, &function, function.start, &inlined));
    made_go_free(&made);
}

/* From Go 1.26 on, the header lacks the address of the code; the runtime's record has it. */
static void test_the_start_of_the_code_in_the_runtimes_record(void **state)
{
    (void)state;
    struct made_go made;
    struct pclntab table;
    make_go(&made, PCLNTAB_1_20, functions, COUNT);
    put_go64(&made, MADE_GO_TABLE + 24, 0);
    assert_true(pclntab_open(&table, &made.module));
    assert_int_equal(table.text, MADE_GO_CODE);
    assert_int_equal(table.inline_data, MADE_GO_INLINED);
    /* Without that record, the address is not known. */
    put_go64(&made, MADE_GO_MODULE, 0);
    assert_false(pclntab_open(&table, &made.module));
    put_go64(&made, MADE_GO_TABLE + 24, MADE_GO_CODE);
    assert_true(pclntab_open(&table, &made.module));
    assert_int_equal(table.inline_data, 0);
    made_go_free(&made);
}

/* The file has zeros where the loader will store pointers. */
static void test_pointers_for_the_loader_to_set(void **state)
{
    (void)state;
    static const unsigned words[] = {0, 1, 10, 22, 23, 40};
    struct made_go made;
    struct pclntab table;
    make_go(&made, PCLNTAB_1_20, functions, COUNT);
    uint64_t dynamic = MADE_GO_DATA + 0x3000, relocations = MADE_GO_DATA + 0x3100;
    /* An unrelated pointer to the table comes first. */
    Elf64_Rela rela = {MADE_GO_DATA + 0x2f00, ELF64_R_INFO(0, R_X86_64_RELATIVE), MADE_GO_TABLE};
#ifdef __aarch64__
    rela.r_info = ELF64_R_INFO(0, R_AARCH64_RELATIVE);
#endif
    put_go(&made, relocations, &rela, sizeof rela);
    for (unsigned i = 0; i < 6; i++) {
        uint64_t value;
        rela.r_offset = MADE_GO_MODULE + 8 * words[i];
        memcpy(&value, made.bytes + (rela.r_offset - 0x400000), sizeof value);
        rela.r_addend = (Elf64_Sxword)value;
        put_go64(&made, rela.r_offset, 0);
        put_go(&made, relocations + (i + 1) * sizeof rela, &rela, sizeof rela);
    }
    const Elf64_Dyn entries[] = {{DT_RELA, {relocations}}, {DT_RELASZ, {7 * sizeof rela}}, {0}};
    put_go(&made, dynamic, entries, sizeof entries);
    put_go64(&made, MADE_GO_TABLE + 24, 0);
    assert_false(pclntab_open(&table, &made.module));
    made.module.dynamic = (struct module_part){dynamic, sizeof entries};
    assert_true(pclntab_open(&table, &made.module));
    assert_int_equal(table.text, MADE_GO_CODE);
    assert_int_equal(table.inline_data, MADE_GO_INLINED);
    made_go_free(&made);
}

/* Other linkers put the table into a larger section, and all sections may have been stripped. */
static void test_a_table_that_no_section_shows(void **state)
{
    (void)state;
    for (unsigned form = 0; form < FORMS; form++) {
        struct made_go made;
        struct pclntab table;
        make_go(&made, (enum pclntab_form)form, functions, COUNT);
        /* Data that only looks like a table comes first. */
        put_go(&made, MADE_GO_DATA + 0x20, made.bytes + 0x2100, 16);
        made.module.go = (struct go_traces){.is_go = true, .has_sections = true};
        assert_true(pclntab_open(&table, &made.module));
        assert_int_equal(table.address, MADE_GO_TABLE);
        made.module.go = (struct go_traces){.has_sections = false};
        assert_true(pclntab_open(&table, &made.module));
        made.module.go = (struct go_traces){.has_sections = true};
        assert_false(pclntab_open(&table, &made.module));
        made_go_free(&made);
    }
}

static void test_what_is_no_table(void **state)
{
    (void)state;
    struct made_go made;
    struct pclntab table;
    make_go(&made, PCLNTAB_1_20, functions, COUNT);
    const unsigned char *whole = made.bytes;
    static const struct {
        uint64_t address, value;
    } damages[] = {
        {MADE_GO_TABLE, 0xfffffff2},                              /* no magic */
        {MADE_GO_TABLE + 4, 0x08010001},                          /* no zeros after the magic */
        {MADE_GO_TABLE + 4, 0x04010000},                          /* pointers of four bytes */
        {MADE_GO_TABLE + 8, 0},                                   /* no functions */
        {MADE_GO_TABLE + 8, 0xffffff},                            /* more than fit */
        {MADE_GO_TABLE + 32, 0x7fffffff},                         /* names outside */
        {MADE_GO_TABLE + 64, 0x7fffffff},                         /* functions outside */
        {MADE_GO_TABLE + MADE_GO_FUNCTIONS, 0x7fffffff},          /* not ascending */
        {MADE_GO_TABLE + MADE_GO_FUNCTIONS + 8 * COUNT, 0x10000}, /* ends behind the code */
    };
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        uint32_t before;
        memcpy(&before, whole + (damages[i].address - 0x400000), sizeof before);
        put_go32(&made, damages[i].address, damages[i].value);
        assert_false(pclntab_open(&table, &made.module));
        put_go32(&made, damages[i].address, before);
        assert_true(pclntab_open(&table, &made.module));
    }
    made.module.is_readable = false;
    assert_false(pclntab_open(&table, &made.module));
    made_go_free(&made);
}

/* Looks up everything. */
static void look_up(struct module *module)
{
    struct pclntab table;
    if (!pclntab_open(&table, module))
        return;
    for (uint64_t address = MADE_GO_CODE; address < MADE_GO_CODE + 0x1000; address += 0x1f) {
        struct pclntab_function function;
        struct pclntab_inlined inlined;
        char string[PCLNTAB_STRING_MAX];
        uint32_t number;
        if (!pclntab_find(&table, address, &function))
            continue;
        assert_true(address >= function.start && address < function.end);
        pclntab_name(&table, function.name, string);
        pclntab_frame_bytes(&table, &function, address, &number);
        pclntab_line(&table, &function, address, string, &number);
        if (pclntab_inlined(&table, &function, address, &inlined))
            assert_true(inlined.call_address < function.end);
    }
}

/* Changes each byte in turn. The lookups end, and read nothing out of bounds (ASan). */
static void test_damaged_tables(void **state)
{
    (void)state;
    static const uint8_t values[] = {0, 0x7f, 0x80, 0xff};
    for (unsigned form = 0; form < FORMS; form++) {
        struct made_go made;
        make_go(&made, (enum pclntab_form)form, functions, COUNT);
        for (size_t at = 0x2100; at < 0x2100 + MADE_GO_TABLES + 0x80; at++) {
            uint8_t before = made.bytes[at];
            if (!before && at % 16) /* most of it is empty */
                continue;
            for (size_t i = 0; i < sizeof values; i++) {
                made.bytes[at] = values[i];
                look_up(&made.module);
            }
            made.bytes[at] = before;
        }
        made_go_free(&made);
    }
}

/* The file ends within the table. */
static void test_a_table_that_is_cut(void **state)
{
    (void)state;
    for (unsigned form = 0; form < FORMS; form++) {
        for (size_t bytes = 0x2100; bytes < 0x3100; bytes += 13) {
            struct made_go made;
            make_go(&made, (enum pclntab_form)form, functions, COUNT);
            made.module.image.bytes = bytes;
            look_up(&made.module);
            made_go_free(&made);
        }
    }
}

/* A table of numbers that never reaches the address. */
static void test_numbers_without_end(void **state)
{
    (void)state;
    struct made_go made;
    struct pclntab table;
    struct pclntab_function function;
    uint32_t bytes;
    open_made(&made, PCLNTAB_1_20, &table);
    assert_true(pclntab_find(&table, MADE_GO_CODE, &function));
    for (uint64_t at = 0; at < 0x1f00; at += 2)
        put_go(&made, MADE_GO_DATA + 0x2000 + at, "\x02", 2);
    function.frame_table = 0x2000 - 0x100 - MADE_GO_TABLES;
    assert_false(pclntab_frame_bytes(&table, &function, MADE_GO_CODE, &bytes));
    made_go_free(&made);
}

static void test_a_name_that_is_long(void **state)
{
    (void)state;
    struct made_go made;
    struct pclntab table;
    char name[PCLNTAB_STRING_MAX];
    open_made(&made, PCLNTAB_1_20, &table);
    memset(made.bytes + 0x3100, 'x', 0x1400);
    assert_true(pclntab_name(&table, 0x1000 - MADE_GO_NAMES, name));
    assert_int_equal(strlen(name), PCLNTAB_STRING_MAX - 1);
    made_go_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_form),
        cmocka_unit_test(test_inlined_calls),
        cmocka_unit_test(test_inlined_calls_of_go_1_27),
        cmocka_unit_test(test_an_inlined_call_that_is_elsewhere),
        cmocka_unit_test(test_the_start_of_the_code_in_the_runtimes_record),
        cmocka_unit_test(test_pointers_for_the_loader_to_set),
        cmocka_unit_test(test_a_table_that_no_section_shows),
        cmocka_unit_test(test_what_is_no_table),
        cmocka_unit_test(test_damaged_tables),
        cmocka_unit_test(test_a_table_that_is_cut),
        cmocka_unit_test(test_numbers_without_end),
        cmocka_unit_test(test_a_name_that_is_long),
    };
    return cmocka_run_group_tests_name("pclntab", tests, NULL, NULL);
}
