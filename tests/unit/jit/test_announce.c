/* Symbols and lines from a perf map or jitdump pass through a message unchanged, and impossible
 * values are refused. */
#include "unit.h"
#include "jit/announce.h"

#include <errno.h>

struct world {
    struct jit_code code;
    struct buffer announced;
};

static int set_up(void **state)
{
    struct world *world = *state = calloc(1, sizeof *world);
    return jit_code_init(&world->code);
}

static int tear_down(void **state)
{
    struct world *world = *state;
    jit_code_free(&world->code);
    buffer_free(&world->announced);
    free(world);
    return 0;
}

static int take(struct world *world, size_t length)
{
    const uint8_t *begin = (const uint8_t *)world->announced.bytes;
    return announced_take((struct bytes){begin, begin + length, false}, &world->code);
}

static int take_all(struct world *world)
{
    assert_int_equal(world->announced.error, 0);
    return take(world, world->announced.length);
}

static void announce_all_kinds(struct world *world)
{
    announce_line(&world->announced, 0, "a.js", 4, 7);
    announce_line(&world->announced, 8, NULL, 0, 9);
    announce_symbol(&world->announced, 0x1000, 16, "first", 5, 2);
    announce_id(&world->announced, 42);
    announce_symbol(&world->announced, 0x2000, 32, "second", 6, 0);
    announce_move(&world->announced, 42, 0x3000);
}

static void test_it_arrives(void **state)
{
    struct world *world = *state;
    struct jit_code *code = &world->code;
    announce_all_kinds(world);
    assert_int_equal(take_all(world), 0);
    assert_int_equal(code->symbol_count, 3);
    assert_int_equal(code->symbols[0].size, 16);
    assert_int_equal(code->symbols[0].id, 42);
    assert_int_equal(code->symbols[1].start, 0x2000);
    assert_string_equal(strings_get(&code->strings, code->symbols[1].name), "second");
    assert_int_equal(code->symbols[2].start, 0x3000);
    assert_string_equal(strings_get(&code->strings, code->symbols[2].name), "first");
    const struct jit_line *line = jit_code_line(code, &code->symbols[0], 0x100c);
    assert_non_null(line);
    assert_int_equal(line->line, 9);
    assert_string_equal(strings_get(&code->strings, line->file), "a.js");
}

/* Cut between characters: the last one has two bytes, and only the first would fit. */
static void test_long_names_are_cut(void **state)
{
    struct world *world = *state;
    char name[3 * JIT_NAME_MAX];
    memset(name, 'n', sizeof name);
    memcpy(&name[JIT_NAME_MAX - 1], "\u00e4", 2);
    announce_symbol(&world->announced, 0x1000, 16, name, sizeof name, 0);
    assert_int_equal(take_all(world), 0);
    const char *kept = strings_get(&world->code.strings, world->code.symbols[0].name);
    assert_int_equal(strlen(kept), JIT_NAME_MAX - 1);
}

/* A message cut short anywhere is refused, unless the missing end was not needed. */
static void test_cut_short(void **state)
{
    struct world *world = *state;
    size_t taken = 0;
    announce_all_kinds(world);
    for (size_t length = 0; length < world->announced.length; length++) {
        int err = take(world, length);
        assert_true(err == 0 || err == -EPROTO);
        taken += !err;
    }
    assert_int_equal(taken, 6);
}

static void assert_refused(struct world *world)
{
    assert_int_equal(take_all(world), -EPROTO);
    world->announced.length = 0;
}

static void test_what_can_not_be(void **state)
{
    struct world *world = *state;
    uint32_t huge = JIT_NAME_MAX + 2;
    buffer_write(&world->announced, "\4", 1);
    assert_refused(world);
    announce_symbol(&world->announced, UINT64_MAX - 15, 17, "past the end", 12, 0);
    assert_refused(world);
    announce_symbol(&world->announced, 0x1000, 16, "with another's lines", 20, 1);
    assert_refused(world);
    announce_line(&world->announced, 0, NULL, 0, 7);
    assert_refused(world);
    char name[JIT_NAME_MAX + 2] = "";
    announce_symbol(&world->announced, 0x1000, 16, "", 0, 0);
    memcpy(&world->announced.bytes[world->announced.length - sizeof huge], &huge, sizeof huge);
    buffer_write(&world->announced, name, sizeof name);
    assert_refused(world);
    assert_int_equal(world->code.symbol_count, 0);
    announce_symbol(&world->announced, UINT64_MAX - 16, 16, "before the end", 14, 0);
    assert_int_equal(take_all(world), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_it_arrives),
        TEST(test_long_names_are_cut),
        TEST(test_cut_short),
        TEST(test_what_can_not_be),
    };
    return cmocka_run_group_tests_name("announce", tests, NULL, NULL);
}
