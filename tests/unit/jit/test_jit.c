/* The names that generated code had when it was sampled. */
#include "unit.h"
#include "jit/jit.h"

#include <stdio.h>

enum { SPACE = 3, NEXT_SPACE = 4 };

static int set_up(void **state)
{
    struct jit *jit;
    if (jit_new(&jit))
        return -1;
    *state = jit;
    return 0;
}

static int tear_down(void **state)
{
    jit_free(*state);
    return 0;
}

static void announce(struct jit *jit, uint64_t start, uint64_t size, const char *name)
{
    assert_int_equal(jit_code_add(&jit->code, start, size, name, strlen(name), 0), 0);
}

/* Whether the new announcements replace code that was sampled. */
static bool replaces(struct jit *jit)
{
    bool is_replaced;
    assert_int_equal(jit_take_in(jit, &is_replaced), 0);
    return is_replaced;
}

static void sample(struct jit *jit, uint32_t space, uint64_t address)
{
    assert_int_equal(jit_note(jit, space, address), 0);
}

static void assert_name(const struct jit *jit, uint32_t space, uint64_t address, const char *name)
{
    const struct jit_symbol *symbol = jit_find(jit, space, address);
    assert_string_equal(symbol ? strings_get(&jit->code.strings, symbol->name) : "-", name);
}

static void test_a_late_entry_names_what_was_sampled_before(void **state)
{
    struct jit *jit = *state;
    assert_false(replaces(jit));
    sample(jit, SPACE, 0x1008);
    sample(jit, SPACE, 0x5000);
    announce(jit, 0x1000, 0x10, "late");
    assert_false(replaces(jit));
    jit_settle(jit);
    assert_name(jit, SPACE, 0x1008, "late");
    assert_name(jit, SPACE, 0x5000, "-");
    assert_name(jit, SPACE, 0x1009, "-"); /* not sampled */
}

static void test_replaced_code_keeps_its_name(void **state)
{
    struct jit *jit = *state;
    announce(jit, 0x1000, 0x10, "first");
    assert_false(replaces(jit));
    sample(jit, SPACE, 0x1008);
    sample(jit, SPACE, 0x5000);
    announce(jit, 0x1004, 0x10, "second");
    assert_true(replaces(jit));
    sample(jit, NEXT_SPACE, 0x1008);
    /* Code without a name can still get one. */
    announce(jit, 0x5000, 0x10, "late");
    assert_false(replaces(jit));
    jit_settle(jit);
    assert_name(jit, SPACE, 0x1008, "first");
    assert_name(jit, NEXT_SPACE, 0x1008, "second");
    assert_name(jit, SPACE, 0x5000, "late");
}

static void test_the_first_late_name_is_the_one(void **state)
{
    struct jit *jit = *state;
    sample(jit, SPACE, 0x1008);
    announce(jit, 0x1000, 0x10, "first");
    assert_false(replaces(jit));
    announce(jit, 0x1000, 0x10, "second");
    assert_true(replaces(jit));
    jit_settle(jit);
    assert_name(jit, SPACE, 0x1008, "first");
}

static void test_only_other_names_of_sampled_addresses_replace(void **state)
{
    struct jit *jit = *state;
    announce(jit, 0x1000, 0x10, "first");
    announce(jit, 0x2000, 0x10, "never sampled");
    assert_false(replaces(jit));
    sample(jit, SPACE, 0x1008);
    announce(jit, 0x1000, 0x10, "first"); /* the same again */
    announce(jit, 0x2000, 0x10, "second");
    announce(jit, 0x1009, 0x10, "behind it");
    assert_false(replaces(jit));
    announce(jit, 0x1004, 0x10, "first"); /* the same name at another offset */
    assert_true(replaces(jit));
    announce(jit, 0x1000, 0x10, "third"); /* nothing was sampled since the last change */
    assert_false(replaces(jit));
}

#define WITH_JIT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static struct jit *copy_of(const struct jit *jit)
{
    struct jit *copy;
    assert_int_equal(jit_copy(jit, &copy), 0);
    return copy;
}

static void test_a_copy_has_the_names_by_now(void **state)
{
    struct jit *jit = *state;
    announce(jit, 0x1000, 0x10, "first");
    announce(jit, 0x9000, 0x10, "never sampled");
    assert_false(replaces(jit));
    sample(jit, SPACE, 0x1008);
    sample(jit, SPACE, 0x1004);
    sample(jit, SPACE, 0x5000);
    struct jit *copy = copy_of(jit);
    /* Copying does not settle the original: a later entry still names code without a name. */
    announce(jit, 0x5000, 0x10, "late");
    assert_false(replaces(jit));
    jit_settle(jit);
    assert_name(jit, SPACE, 0x5000, "late");
    jit_note(jit, SPACE, 0x9000);
    assert_name(copy, SPACE, 0x1008, "first");
    assert_name(copy, SPACE, 0x1004, "first");
    assert_name(copy, SPACE, 0x5000, "-");
    assert_name(copy, SPACE, 0x9000, "-");
    assert_int_equal(copy->code.symbol_count, 1); /* only what it needs */
    jit_free(copy);
}

static void test_a_copy_keeps_names_of_replaced_code(void **state)
{
    struct jit *jit = *state;
    announce(jit, 0x1000, 0x10, "old");
    assert_false(replaces(jit));
    sample(jit, SPACE, 0x1008);
    announce(jit, 0x1000, 0x10, "new");
    assert_true(replaces(jit));
    sample(jit, NEXT_SPACE, 0x1008);
    struct jit *copy = copy_of(jit);
    assert_name(copy, SPACE, 0x1008, "old");
    assert_name(copy, NEXT_SPACE, 0x1008, "new");
    jit_free(copy);
}

static void test_a_copy_has_lines(void **state)
{
    struct jit *jit = *state;
    assert_int_equal(jit_code_add_line(&jit->code, 0, "skipped.js", 10, 1), 0);
    assert_int_equal(jit_code_add(&jit->code, 0x9000, 0x10, "skipped", 7, 1), 0);
    assert_int_equal(jit_code_add_line(&jit->code, 0, "a.js", 4, 3), 0);
    assert_int_equal(jit_code_add_line(&jit->code, 8, "b.js", 4, 5), 0);
    assert_int_equal(jit_code_add(&jit->code, 0x1000, 0x10, "f", 1, 2), 0);
    assert_false(replaces(jit));
    sample(jit, SPACE, 0x1009);
    struct jit *copy = copy_of(jit);
    const struct jit_symbol *symbol = jit_find(copy, SPACE, 0x1009);
    assert_non_null(symbol);
    const struct jit_line *line = jit_code_line(&copy->code, symbol, 0x1009);
    assert_non_null(line);
    assert_int_equal(line->line, 5);
    assert_string_equal(strings_get(&copy->code.strings, line->file), "b.js");
    assert_int_equal(copy->code.line_count, 2);
    jit_free(copy);
}

/* If some function has a line in its first 64 bytes, none has V8's shift, also in a copy without
 * that function. */
static void test_a_copy_has_the_shift_of_lines(void **state)
{
    struct jit *jit = *state;
    assert_int_equal(jit_code_add_line(&jit->code, 0x40, "a.js", 4, 3), 0);
    assert_int_equal(jit_code_add_line(&jit->code, 0x80, "a.js", 4, 4), 0);
    assert_int_equal(jit_code_add(&jit->code, 0x1000, 0x100, "f", 1, 2), 0);
    assert_false(replaces(jit));
    sample(jit, SPACE, 0x1050);
    for (uint32_t i = 0; i < 2; i++) {
        struct jit *copy = copy_of(jit);
        const struct jit_symbol *symbol = jit_find(copy, SPACE, 0x1050);
        assert_non_null(symbol);
        assert_int_equal(jit_code_line(&copy->code, symbol, 0x1050)->line, i ? 3 : 4);
        jit_free(copy);
        assert_int_equal(jit_code_add_line(&jit->code, 0, "b.js", 4, 1), 0);
        assert_int_equal(jit_code_add(&jit->code, 0x9000, 0x10, "never sampled", 13, 1), 0);
        assert_false(replaces(jit));
    }
}

/* Moved code shares its lines, however often it has moved. */
static void test_a_copy_has_the_lines_of_moved_code_once(void **state)
{
    enum { LINES = 1000, MOVES = 10000 }; /* more lines than the limit, if each copy had its own */
    struct jit *jit = *state;
    announce(jit, 0x100, 0x10, "without lines");
    for (uint32_t i = 0; i < LINES; i++)
        assert_int_equal(jit_code_add_line(&jit->code, i, "a.js", 4, i + 1), 0);
    assert_int_equal(jit_code_add(&jit->code, 0x1000, 0x1000, "f", 1, LINES), 0);
    assert_int_equal(jit_code_identify(&jit->code, 7), 0);
    sample(jit, SPACE, 0x108);
    for (uint32_t i = 2; i < MOVES; i++) {
        assert_int_equal(jit_code_move(&jit->code, 7, i * 0x1000), 0);
        sample(jit, SPACE, i * 0x1000 + 5);
    }
    assert_false(replaces(jit));
    struct jit *copy = copy_of(jit);
    assert_int_equal(copy->code.line_count, LINES);
    for (uint32_t i = 2; i < MOVES; i += 77) {
        uint64_t address = i * 0x1000 + 5;
        const struct jit_symbol *symbol = jit_find(copy, SPACE, address);
        assert_non_null(symbol);
        assert_int_equal(jit_code_line(&copy->code, symbol, address)->line, 6);
    }
    assert_name(copy, SPACE, 0x108, "without lines");
    jit_free(copy);
    /* Nor does the original copy them when it drops what is not needed. */
    jit_settle(jit);
    jit_need(jit, SPACE, 0x2005);
    jit_need(jit, SPACE, 0x3005);
    announce(jit, 0x2000, (MOVES - 2) * 0x1000, "g");
    assert_false(replaces(jit));
    assert_int_equal(jit_keep_needed(jit), 0);
    assert_true(jit->code.symbol_count < 10);
    assert_int_equal(jit->code.line_count, LINES);
    assert_int_equal(jit_code_line(&jit->code, jit_find(jit, SPACE, 0x3005), 0x3005)->line, 6);
}

/* The last name may exceed the limit. */
static void test_a_copy_of_as_much_text_as_there_may_be(void **state)
{
    struct jit *jit = *state;
    char name[JIT_NAME_MAX];
    uint64_t count = 1;
    announce(jit, 0, 1, "a");
    memset(name, 'x', sizeof name);
    for (; jit->code.strings.text_bytes < JIT_TEXT_BYTES_MAX; count++) {
        memcpy(name, &(uint32_t){(uint32_t)count | 0x01010101}, 4);
        memcpy(name + 4, &(uint32_t){(uint32_t)~count | 0x10101010}, 4);
        assert_int_equal(jit_code_add(&jit->code, count, 1, name, sizeof name, 0), 0);
    }
    assert_false(replaces(jit));
    for (uint64_t i = count; i-- > 0;)
        sample(jit, SPACE, i);
    struct jit *copy = copy_of(jit);
    assert_int_equal(copy->code.symbol_count, count);
    assert_non_null(jit_find(copy, SPACE, 1));
    assert_non_null(jit_find(copy, SPACE, count - 1));
    assert_name(copy, SPACE, 0, "a");
    jit_free(copy);
}

/* A program that replaces its code for ever. */
static void test_replaced_code_goes_unless_it_is_needed(void **state)
{
    struct jit *jit = *state;
    for (uint32_t i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        announce(jit, 0x1000, 0x10, name);
        replaces(jit);
        sample(jit, SPACE + i, 0x1008);
    }
    announce(jit, 0x9000, 0x10, "never sampled");
    assert_false(replaces(jit));
    jit_need(jit, SPACE + 7, 0x1008);
    assert_int_equal(jit_keep_needed(jit), 0);
    assert_int_equal(jit->use_count, 1);
    assert_int_equal(jit->code.symbol_count, 3); /* including the current ones */
    assert_int_equal(jit->code.strings.count, 1 + 3);
    assert_name(jit, SPACE + 7, 0x1008, "f7");
    sample(jit, SPACE, 0x1008);
    sample(jit, SPACE, 0x9008);
    announce(jit, 0x1000, 0x10, "next");
    assert_true(replaces(jit));
    jit_settle(jit);
    assert_name(jit, SPACE, 0x1008, "f99"); /* as for a space that did not exist before */
    assert_name(jit, SPACE, 0x9008, "never sampled");
    assert_int_equal(jit_keep_needed(jit), 0);
    assert_int_equal(jit->use_count, 0);
    assert_int_equal(jit->code.symbol_count, 2);
}

/* Code that moves, with lines, and lines that were announced before their function. */
static void test_what_stays_keeps_its_id_and_lines(void **state)
{
    struct jit *jit = *state;
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(jit_code_add_line(&jit->code, 0, "old.js", 6, i + 1), 0);
        assert_int_equal(jit_code_add(&jit->code, 0x1000, 0x10, "f", 1, 1), 0);
        assert_int_equal(jit_code_identify(&jit->code, i + 1), 0);
    }
    assert_int_equal(jit_code_add_line(&jit->code, 0, "next.js", 7, 20), 0);
    assert_false(replaces(jit));
    assert_int_equal(jit_keep_needed(jit), 0);
    assert_int_equal(jit->code.symbol_count, 1);
    assert_int_equal(jit_code_add(&jit->code, 0x2000, 0x10, "next", 4, 1), 0);
    assert_int_equal(jit_code_move(&jit->code, 10, 0x3000), 0);
    assert_int_equal(jit_code_move(&jit->code, 9, 0x4000), 0);
    assert_false(replaces(jit));
    const uint64_t places[] = {0x2000, 0x3000};
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t number = jit_code_find(&jit->code, places[i]);
        assert_int_not_equal(number, JIT_NO_SYMBOL);
        const struct jit_line *line =
            jit_code_line(&jit->code, &jit->code.symbols[number], places[i]);
        assert_int_equal(line->line, i ? 10 : 20);
    }
    assert_int_equal(jit_code_find(&jit->code, 0x4000), JIT_NO_SYMBOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_JIT(test_a_late_entry_names_what_was_sampled_before),
        WITH_JIT(test_replaced_code_keeps_its_name),
        WITH_JIT(test_the_first_late_name_is_the_one),
        WITH_JIT(test_only_other_names_of_sampled_addresses_replace),
        WITH_JIT(test_a_copy_has_the_names_by_now),
        WITH_JIT(test_a_copy_keeps_names_of_replaced_code),
        WITH_JIT(test_a_copy_has_lines),
        WITH_JIT(test_a_copy_has_the_shift_of_lines),
        WITH_JIT(test_a_copy_has_the_lines_of_moved_code_once),
        WITH_JIT(test_a_copy_of_as_much_text_as_there_may_be),
        WITH_JIT(test_replaced_code_goes_unless_it_is_needed),
        WITH_JIT(test_what_stays_keeps_its_id_and_lines),
    };
    return cmocka_run_group_tests_name("jit", tests, NULL, NULL);
}
