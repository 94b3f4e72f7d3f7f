/* Lookup results are remembered unchanged. */
#include "unit.h"
#include "symbol/names/cache.h"

#include <stdio.h>

static int set_up(void **state)
{
    struct name_cache *cache = calloc(1, sizeof *cache);
    *state = cache;
    return cache ? name_cache_init(cache) : -1;
}

static int tear_down(void **state)
{
    name_cache_free(*state);
    free(*state);
    return 0;
}

static void add(struct name_cache *cache, uint32_t module, uint64_t address, const char *name)
{
    struct symbol symbol = {.lines = {{.name = name, .shown = name}}, .line_count = 1};
    assert_int_equal(name_cache_add(cache, module, address, &symbol, false), 0);
}

static void assert_name(struct name_cache *cache, uint32_t module, uint64_t address,
                        const char *name)
{
    struct symbol symbol;
    bool is_trampoline;
    assert_true(name_cache_get(cache, module, address, &symbol, &is_trampoline));
    assert_int_equal(symbol.line_count, 1);
    assert_string_equal(symbol.lines[0].name, name);
    assert_false(is_trampoline);
}

static void test_an_address_is_one_of_its_module(void **state)
{
    struct name_cache *cache = *state;
    struct symbol symbol;
    bool is_trampoline;
    add(cache, 1, 0x1000, "of one");
    add(cache, 2, 0x1000, "of two");
    add(cache, 1, 0x1001, "next");
    assert_name(cache, 1, 0x1000, "of one");
    assert_name(cache, 2, 0x1000, "of two");
    assert_name(cache, 1, 0x1001, "next");
    assert_false(name_cache_get(cache, 2, 0x1001, &symbol, &is_trampoline));
    assert_false(name_cache_get(cache, 3, 0x1000, &symbol, &is_trampoline));
}

static void test_many_addresses(void **state)
{
    struct name_cache *cache = *state;
    char name[32];
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "f%u", i / 2);
        add(cache, i % 3, i, name);
    }
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "f%u", i / 2);
        assert_name(cache, i % 3, i, name);
    }
}

static void test_inlined_frames_keep_their_lines(void **state)
{
    struct name_cache *cache = *state;
    struct symbol found,
        symbol = {
            .lines =
                {{.name = "_inner", .shown = "inner", .file = "a.h", .line = 7, .is_inlined = true},
                 {.name = "middle", .shown = "middle", .is_inlined = true},
                 {.name = "outer", .shown = "outer", .file = "a.c", .line = 70}},
            .line_count = 3,
            .function_offset = 0x42,
            .has_debug_info = true,
        };
    bool is_trampoline;
    add(cache, 1, 0x500, "before");
    assert_int_equal(name_cache_add(cache, 1, 0x1000, &symbol, false), 0);
    add(cache, 1, 0x2000, "behind");
    memset(&symbol, 0, sizeof symbol);
    assert_true(name_cache_get(cache, 1, 0x1000, &found, &is_trampoline));
    assert_int_equal(found.line_count, 3);
    assert_int_equal(found.function_offset, 0x42);
    assert_true(found.has_debug_info);
    assert_string_equal(found.lines[0].name, "_inner");
    assert_string_equal(found.lines[0].shown, "inner");
    assert_string_equal(found.lines[0].file, "a.h");
    assert_int_equal(found.lines[0].line, 7);
    assert_true(found.lines[0].is_inlined);
    assert_string_equal(found.lines[1].name, "middle");
    assert_null(found.lines[1].file);
    assert_int_equal(found.lines[1].line, 0);
    assert_string_equal(found.lines[2].name, "outer");
    assert_string_equal(found.lines[2].file, "a.c");
    assert_false(found.lines[2].is_inlined);
    assert_name(cache, 1, 0x500, "before");
    assert_name(cache, 1, 0x2000, "behind");
}

/* That an address has no name is remembered, too. */
static void test_an_address_without_a_name(void **state)
{
    struct name_cache *cache = *state;
    struct symbol found = {.line_count = 9}, symbol = {.line_count = 0};
    bool is_trampoline = true;
    assert_int_equal(name_cache_add(cache, 1, 0x1000, &symbol, false), 0);
    assert_true(name_cache_get(cache, 1, 0x1000, &found, &is_trampoline));
    assert_int_equal(found.line_count, 0);
    assert_false(found.has_debug_info);
    assert_false(is_trampoline);
}

static void test_a_trampoline(void **state)
{
    struct name_cache *cache = *state;
    struct symbol found, symbol = {.line_count = 0};
    bool is_trampoline = false;
    assert_int_equal(name_cache_add(cache, 1, 0x1000, &symbol, true), 0);
    assert_true(name_cache_get(cache, 1, 0x1000, &found, &is_trampoline));
    assert_true(is_trampoline);
}

/* Each profile has one address of its own, and one that all share. */
static void test_what_no_profile_has_had_for_long_goes(void **state)
{
    struct name_cache *cache = *state;
    struct symbol symbol = {.line_count = 0};
    bool is_trampoline;
    size_t most = 0;
    assert_int_equal(name_cache_add(cache, 1, 0x1000, &symbol, true), 0);
    for (uint32_t profile = 0; profile < 1000; profile++) {
        for (uint32_t i = 0; i < 100; i++)
            assert_int_equal(name_cache_add(cache, 2, profile * 100 + i, &symbol, false), 0);
        assert_true(name_cache_get(cache, 1, 0x1000, &symbol, &is_trampoline));
        assert_true(is_trampoline);
        most = cache->address_count > most ? cache->address_count : most;
        assert_int_equal(name_cache_age(cache), 0);
    }
    assert_true(most < 20000);
    assert_true(name_cache_get(cache, 2, 99999, &symbol, &is_trampoline));
    assert_false(name_cache_get(cache, 2, 0, &symbol, &is_trampoline));
}

#define WITH_CACHE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CACHE(test_an_address_is_one_of_its_module),
        WITH_CACHE(test_many_addresses),
        WITH_CACHE(test_inlined_frames_keep_their_lines),
        WITH_CACHE(test_an_address_without_a_name),
        WITH_CACHE(test_a_trampoline),
        WITH_CACHE(test_what_no_profile_has_had_for_long_goes),
    };
    return cmocka_run_group_tests_name("name_cache", tests, NULL, NULL);
}
