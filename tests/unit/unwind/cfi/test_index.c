/* Finding the entry of an address: by the linker's table, or by a table that we make. */
#include "make_cfi.h"

#include <errno.h>

static struct made_section eh, debug;
static struct cfi_entry entry;

static void begin(void)
{
    eh.length = debug.length = 0;
    debug.is_debug_frame = true;
}

/* The start of the function that is found; 0 if there is none. */
static uint64_t find(struct module *module, uint64_t address)
{
    int err = cfi_find(module, address, &entry);
    assert_true(err == 0 || err == -ENOENT);
    if (err)
        return 0;
    assert_in_range(address, entry.start, entry.end - 1);
    return entry.start;
}

/* Functions of 0x10 bytes every 0x20, not in the order of their addresses; some have a CIE of their
 * own. */
#define FUNCTIONS 64
static uint64_t positions[FUNCTIONS];

static uint64_t function_at(size_t i)
{
    return MADE_ADDRESS + 0x100 + i * 0x20;
}

static void put_functions(struct made_section *section, const struct made_form *form)
{
    uint64_t cie = 0;
    put_bytes(section, BYTES(4, 0, 0, 0, 1, 2, 3, 4)); /* damaged, so it is left out */
    for (size_t i = 0; i < FUNCTIONS; i++) {
        size_t number = i * 29 % FUNCTIONS;
        if (i % 16 == 0)
            cie = put_cie(section, form, BYTES(MADE_ENTRY_ROW));
        positions[number] =
            put_fde(section, form, cie, function_at(number), 0x10, BYTES(DW_CFA_nop));
    }
    put_number(section, 0, 4);
}

/* Writes the table of .eh_frame_hdr into the module's code. */
static void put_table(struct module *module)
{
    uint64_t header = MADE_ADDRESS + 0x3000;
    module->unwind_table = (struct unwind_table){
        .header_address = header, .entries_address = header + 12, .entry_count = FUNCTIONS};
    for (size_t i = 0; i < FUNCTIONS; i++) {
        int32_t row[2] = {(int32_t)(function_at(i) - header), (int32_t)(positions[i] - header)};
        memcpy(module->image.memory + 0x3000 + 12 + i * sizeof row, row, sizeof row);
    }
}

static void check_functions(struct module *module)
{
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < FUNCTIONS; i++) {
            uint64_t start = function_at(i);
            assert_int_equal(find(module, start - 1), 0); /* in the gap */
            assert_int_equal(find(module, start), start);
            assert_int_equal(find(module, start + 15), start);
            assert_int_equal(find(module, start + 16), 0);
        }
    }
    assert_int_equal(find(module, 0), 0);
    assert_int_equal(find(module, MADE_ADDRESS), 0);
    assert_int_equal(find(module, MADE_ADDRESS + 0x2fff), 0);
    assert_int_equal(find(module, UINT64_MAX), 0);
}

static void test_with_the_linkers_table(void **state)
{
    (void)state;
    struct module module;
    begin();
    put_functions(&eh, &made_eh_form);
    make_module(&module, NULL, &eh, NULL);
    put_table(&module);
    module.eh_frame.bytes = 0; /* not needed */
    check_functions(&module);
    assert_false(module.eh_frame.has_functions);
    module_reset(&module);
    made_module_free(&module);
}

static void test_without_a_table(void **state)
{
    (void)state;
    struct module module;
    begin();
    put_functions(&eh, &made_eh_form);
    make_module(&module, NULL, &eh, NULL);
    check_functions(&module);
    assert_true(module.eh_frame.has_functions);
    assert_int_equal(module.eh_frame.function_count, FUNCTIONS);
    module_reset(&module);
    assert_int_equal(module.eh_frame.function_count, 0);
    made_module_free(&module);
}

static void test_debug_frame(void **state)
{
    (void)state;
    struct module module;
    begin();
    put_functions(&debug, &made_debug_form);
    make_module(&module, NULL, NULL, &debug);
    check_functions(&module);
    assert_int_equal(module.debug_frame.function_count, FUNCTIONS);
    /* If the section is compressed in the file, it is read from memory. */
    module_reset(&module);
    module.debug_frame.memory = malloc(debug.length);
    assert_non_null(module.debug_frame.memory);
    memcpy(module.debug_frame.memory, debug.bytes, debug.length);
    module.debug_frame.offset = UINT64_MAX;
    check_functions(&module);
    module_reset(&module);
    made_module_free(&module);
}

/* A function that is not in one section may be in the other. */
static void test_both_sections(void **state)
{
    (void)state;
    struct module module;
    uint64_t first = MADE_ADDRESS + 0x10, second = MADE_ADDRESS + 0x20;
    begin();
    uint64_t cie = put_cie(&eh, &made_eh_form, BYTES(MADE_ENTRY_ROW));
    uint64_t position =
        put_fde(&eh, &made_eh_form, cie, first, 0x10, BYTES(DW_CFA_def_cfa_offset, 16));
    cie = put_cie(&debug, &made_debug_form, BYTES(MADE_ENTRY_ROW));
    put_fde(&debug, &made_debug_form, cie, first, 0x10, BYTES(DW_CFA_nop));
    put_fde(&debug, &made_debug_form, cie, second, 0x10, BYTES(DW_CFA_nop));
    make_module(&module, NULL, &eh, &debug);
    for (unsigned has_table = 0; has_table < 2; has_table++) {
        assert_int_equal(find(&module, first + 5), first);
        assert_int_equal(bytes_left(&entry.program), 2); /* .eh_frame's */
        assert_int_equal(find(&module, second + 5), second);
        assert_int_equal(find(&module, second + 0x10), 0);
        module_reset(&module);
        /* A table without rows finds nothing in .eh_frame. */
        module.unwind_table.header_address = MADE_ADDRESS + 0x3000;
        module.unwind_table.entries_address = MADE_ADDRESS + 0x300c;
        if (!has_table) {
            assert_int_equal(find(&module, first), first);
            assert_int_equal(bytes_left(&entry.program), 1);
            module_reset(&module);
            int32_t row[2] = {(int32_t)(first - module.unwind_table.header_address),
                              (int32_t)(position - module.unwind_table.header_address)};
            memcpy(module.image.memory + 0x300c, row, sizeof row);
            module.unwind_table.entry_count = 1;
        }
    }
    made_module_free(&module);
}

static void test_nothing_at_all(void **state)
{
    (void)state;
    struct module module;
    begin();
    make_module(&module, NULL, NULL, NULL);
    assert_int_equal(find(&module, MADE_ADDRESS), 0);
    assert_int_equal(find(&module, 0), 0);
    module_reset(&module);
    made_module_free(&module);
}

/* Tables that claim too much, or that do not exist. */
static void test_damaged_tables(void **state)
{
    (void)state;
    struct module module;
    begin();
    put_functions(&eh, &made_eh_form);
    make_module(&module, NULL, &eh, NULL);
    put_table(&module);
    const struct unwind_table right = module.unwind_table;
    module.unwind_table.entry_count = UINT32_MAX;
    find(&module, function_at(5));
    module.unwind_table.entry_count = UINT64_MAX / 8;
    find(&module, function_at(5));
    module.unwind_table = right;
    module.unwind_table.entries_address = UINT64_MAX - 100;
    assert_int_equal(find(&module, function_at(5)), 0);
    module.unwind_table = right;
    /* A row that leads to another function: the found function must contain the address. */
    int32_t position = (int32_t)(positions[6] - right.header_address);
    memcpy(module.image.memory + 0x3000 + 12 + 5 * 8 + 4, &position, sizeof position);
    assert_int_equal(find(&module, function_at(5)), 0);
    /* A row that leads to a CIE, and to nothing. */
    position = (int32_t)(MADE_EH_FRAME + 8 - right.header_address);
    memcpy(module.image.memory + 0x3000 + 12 + 5 * 8 + 4, &position, sizeof position);
    assert_int_equal(find(&module, function_at(5)), 0);
    position = INT32_MIN;
    memcpy(module.image.memory + 0x3000 + 12 + 5 * 8 + 4, &position, sizeof position);
    assert_int_equal(find(&module, function_at(5)), 0);
    assert_int_equal(find(&module, function_at(4)), function_at(4));
    module_reset(&module);
    made_module_free(&module);
}

/* Offsets in a table are signed: one that leads below address 0 is before all functions. */
static void test_offsets_below_the_first_address(void **state)
{
    (void)state;
    struct module module;
    const int32_t lowest = INT32_MIN;
    begin();
    put_functions(&eh, &made_eh_form);
    make_module(&module, NULL, &eh, NULL);
    put_table(&module);
    module.unwind_table.entry_count = 1;
    memcpy(module.image.memory + 0x3000 + 12, &lowest, sizeof lowest);
    assert_int_equal(find(&module, function_at(0)), function_at(0));
    module_reset(&module);
    made_module_free(&module);
}

/* Entries after one that claims to be endless are not found; entries before it are. */
static void test_an_entry_that_never_ends(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 200, (uint64_t)1 << 63, 1u << 20};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct module module;
        begin();
        uint64_t cie = put_cie(&debug, &made_debug_form, BYTES(MADE_ENTRY_ROW));
        put_fde(&debug, &made_debug_form, cie, MADE_ADDRESS, 0x10, BYTES(DW_CFA_nop));
        put_number(&debug, UINT32_MAX, 4);
        put_number(&debug, lengths[i], 8);
        put_number(&debug, cie, 8);
        put_fde(&debug, &made_debug_form, cie, MADE_ADDRESS + 0x40, 0x10, BYTES(DW_CFA_nop));
        make_module(&module, NULL, NULL, &debug);
        assert_int_equal(find(&module, MADE_ADDRESS), MADE_ADDRESS);
        assert_int_equal(find(&module, MADE_ADDRESS + 0x40), 0);
        module_reset(&module);
        made_module_free(&module);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_with_the_linkers_table),
        cmocka_unit_test(test_without_a_table),
        cmocka_unit_test(test_debug_frame),
        cmocka_unit_test(test_both_sections),
        cmocka_unit_test(test_nothing_at_all),
        cmocka_unit_test(test_damaged_tables),
        cmocka_unit_test(test_offsets_below_the_first_address),
        cmocka_unit_test(test_an_entry_that_never_ends),
    };
    return cmocka_run_group_tests_name("cfi_index", tests, NULL, NULL);
}
