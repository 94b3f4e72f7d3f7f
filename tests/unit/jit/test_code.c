/* Which generated code is at an address: the last that was announced. */
#include "unit.h"
#include "jit/code.h"

#include <errno.h>

static int set_up(void **state)
{
    struct jit_code *code = calloc(1, sizeof *code);
    *state = code;
    return code ? jit_code_init(code) : -1;
}

static int tear_down(void **state)
{
    jit_code_free(*state);
    free(*state);
    return 0;
}

static void add(struct jit_code *code, uint64_t start, uint64_t size, const char *name)
{
    assert_int_equal(jit_code_add(code, start, size, name, strlen(name), 0), 0);
}

static void apply(struct jit_code *code)
{
    assert_int_equal(jit_code_prepare(code), 0);
    assert_int_equal(jit_code_apply(code), 0);
}

static const char *name_of(const struct jit_code *code, uint32_t symbol)
{
    return symbol == JIT_NO_SYMBOL ? "-" : strings_get(&code->strings, code->symbols[symbol].name);
}

static void assert_name(const struct jit_code *code, uint64_t address, const char *name)
{
    assert_string_equal(name_of(code, jit_code_find(code, address)), name);
}

static void test_ends_are_exclusive(void **state)
{
    struct jit_code *code = *state;
    assert_name(code, 0x1000, "-");
    add(code, 0x2000, 0x10, "second");
    add(code, 0x1000, 0x10, "first");
    add(code, 0x1010, 0x10, "next to it");
    assert_name(code, 0x1000, "-"); /* not applied yet */
    apply(code);
    assert_name(code, 0xfff, "-");
    assert_name(code, 0x1000, "first");
    assert_name(code, 0x100f, "first");
    assert_name(code, 0x1010, "next to it");
    assert_name(code, 0x1020, "-");
    assert_name(code, 0x2000, "second");
    assert_name(code, 0x2010, "-");
}

static void test_the_last_wins(void **state)
{
    struct jit_code *code = *state;
    add(code, 0x1000, 0x100, "old");
    add(code, 0x1040, 0x10, "inside");
    add(code, 0x1000, 0, "nothing");
    apply(code);
    assert_name(code, 0x1000, "old");
    assert_name(code, 0x103f, "old");
    assert_name(code, 0x1040, "inside");
    assert_name(code, 0x1050, "old");
    assert_name(code, 0x10ff, "old");
    add(code, 0x0ff0, 0x48, "over its start");
    add(code, 0x10f0, 0x20, "over its end");
    assert_string_equal(name_of(code, jit_code_find_pending(code, 0x1000)), "-");
    assert_int_equal(jit_code_prepare(code), 0);
    assert_string_equal(name_of(code, jit_code_find_pending(code, 0x1000)), "over its start");
    assert_string_equal(name_of(code, jit_code_find_pending(code, 0x1040)), "-");
    assert_name(code, 0x1000, "old");
    assert_int_equal(jit_code_apply(code), 0);
    assert_name(code, 0x0ff0, "over its start");
    assert_name(code, 0x1037, "over its start");
    assert_name(code, 0x1038, "old");
    assert_name(code, 0x1040, "inside");
    assert_name(code, 0x10ef, "old");
    assert_name(code, 0x110f, "over its end");
    add(code, 0, UINT64_MAX, "everything");
    apply(code);
    assert_name(code, 0x1040, "everything");
    assert_name(code, 0, "everything");
}

/* Compared with a table that has a cell for each address, for overlapping ranges of all kinds. */
static void test_as_a_plain_table_says(void **state)
{
    enum { ADDRESSES = 64, SYMBOLS = 300 };
    struct jit_code *code = *state;
    char expected[ADDRESSES + 1], name[2] = "";
    uint32_t random = 1;
    memset(expected, '-', ADDRESSES);
    expected[ADDRESSES] = '\0';
    for (unsigned i = 0; i < SYMBOLS; i++) {
        random = random * 1103515245u + 12345;
        unsigned start = random >> 16 & (ADDRESSES - 1), size = 1 + (random >> 8) % 16;
        if (start + size > ADDRESSES)
            size = ADDRESSES - start;
        name[0] = (char)('A' + i % 26);
        add(code, start, size, name);
        memset(expected + start, name[0], size);
        if (i % 7 && i + 1 < SYMBOLS)
            continue;
        apply(code);
        char found[ADDRESSES + 1] = "";
        for (unsigned j = 0; j < ADDRESSES; j++)
            found[j] = *name_of(code, jit_code_find(code, j));
        assert_string_equal(found, expected);
    }
}

static void test_a_long_name_is_cut_between_characters(void **state)
{
    struct jit_code *code = *state;
    char name[JIT_NAME_MAX + 100];
    for (size_t plain = 0; plain < 4; plain++) {
        memset(name, 'a', plain);
        for (size_t i = plain; i + 3 <= sizeof name; i += 3)
            memcpy(name + i, "\xe2\x82\xac", 3);
        assert_int_equal(jit_code_add(code, 0x1000 * (plain + 1), 1, name, sizeof name - 3, 0), 0);
        const char *kept = strings_get(&code->strings, code->symbols[plain].name);
        assert_true(strlen(kept) <= JIT_NAME_MAX && strlen(kept) > JIT_NAME_MAX - 3);
        assert_int_equal((strlen(kept) - plain) % 3, 0);
    }
}

static void test_there_is_an_end_to_them(void **state)
{
    struct jit_code *code = *state;
    for (uint64_t i = 0; i < JIT_SYMBOLS_MAX; i++)
        assert_int_equal(jit_code_add(code, i, 1, "f", 1, 0), 0);
    assert_int_equal(jit_code_add(code, 0, 1, "g", 1, 0), -ENOSPC);
    apply(code);
    assert_name(code, 0, "f");
    assert_name(code, JIT_SYMBOLS_MAX - 1, "f");
    assert_name(code, JIT_SYMBOLS_MAX, "-");
}

/* A symbol may claim more lines than were announced for it. */
static void test_lines_belong_to_one_symbol(void **state)
{
    struct jit_code *code = *state;
    for (uint32_t i = 1; i <= 2; i++) {
        assert_int_equal(jit_code_add_line(code, 0, "a.js", 4, i), 0);
        assert_int_equal(jit_code_add(code, i * 0x1000, 0x10, "f", 1, 2), 0);
        assert_int_equal(code->symbols[i - 1].first_line, i - 1);
        assert_int_equal(code->symbols[i - 1].line_count, 1);
    }
}

#define WITH_CODE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CODE(test_ends_are_exclusive),
        WITH_CODE(test_the_last_wins),
        WITH_CODE(test_as_a_plain_table_says),
        WITH_CODE(test_a_long_name_is_cut_between_characters),
        WITH_CODE(test_lines_belong_to_one_symbol),
        WITH_CODE(test_there_is_an_end_to_them),
    };
    return cmocka_run_group_tests_name("jit_code", tests, NULL, NULL);
}
