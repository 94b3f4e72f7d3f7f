/* Lookups by name in a Go program built by hand. */
#include "make_pclntab.h"
#include "symbol/module_query.h"

#include <errno.h>

static const struct made_function functions[] = {
    {"runtime.allgadd", 0x40, 24, {10, 12}, false, false, false, 0},
    {"main.(*Server).handle", 0x1000 - 0x140, 0x12345, {100, 90}, true, false, true, 0},
    {"runtime.stopm", 0x60, 0, {0, 0}, false, true, false, 0},
    {"runtime.stopmore", 0xa0, 8, {200, 300}, false, false, false, 0},
};
#define COUNT (sizeof functions / sizeof *functions)

struct world {
    struct made_go made;
    struct module_names names;
    union query_answer answer;
};

static int set_up(void **state)
{
    struct world *world = *state = calloc(1, sizeof *world);
    make_go(&world->made, PCLNTAB_1_20, functions, COUNT);
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    module_names_free(&world->names);
    made_go_free(&world->made);
    free(world);
    return 0;
}

static int ask(struct world *world, enum query_kind kind, uint64_t address)
{
    const struct query query = {.kind = kind, .address = address, .name = "none"};
    struct own_debug_files own;
    own_debug_files_init(&own, &world->made.module, NULL);
    return module_query(&world->names, &world->made.module, &own.files, &query, &world->answer);
}

static void test_the_runtime(void **state)
{
    struct world *world = *state;
    const struct go_runtime *go = &world->answer.go;
    uint64_t idle = MADE_GO_CODE + functions[0].code_bytes + functions[1].code_bytes;
    assert_int_equal(ask(world, QUERY_GO, 0), 0);
    assert_int_equal(go->minor, 0);
    assert_int_equal(go->adding.start, MADE_GO_CODE);
    assert_int_equal(go->adding.end, MADE_GO_CODE + functions[0].code_bytes);
    assert_int_equal(go->idle_count, 1);
    assert_int_equal(go->idle[0].start, idle);
    assert_int_equal(go->idle[0].end, idle + functions[2].code_bytes);
}

static void test_a_function(void **state)
{
    struct world *world = *state;
    const struct query_function *function = &world->answer.function;
    uint64_t start = MADE_GO_CODE + functions[0].code_bytes;
    assert_int_equal(ask(world, QUERY_GO_FUNCTION, start + 1), 0);
    assert_int_equal(function->start, start);
    assert_string_equal(function->name, functions[1].name);
    assert_string_equal(function->innermost, "main.inlined");
    assert_string_equal(function->file, "/go/main.go");
    assert_int_equal(function->line, 100);
    assert_int_equal(ask(world, QUERY_GO_FUNCTION, start + functions[1].code_bytes - 1), 0);
    assert_string_equal(function->innermost, "");
    assert_int_equal(function->line, 90);
    assert_int_equal(ask(world, QUERY_GO_FUNCTION, MADE_GO_CODE - 1), -ENOENT);
}

/* Such as a function of a C library in a statically linked Go program. */
static void test_a_foreign_function(void **state)
{
    struct world *world = *state;
    uint64_t start = MADE_GO_CODE + functions[0].code_bytes + functions[1].code_bytes;
    assert_int_equal(ask(world, QUERY_GO_FUNCTION, start), 0);
    assert_string_equal(world->answer.function.name, "runtime.stopm");
    assert_string_equal(world->answer.function.innermost, "");
    assert_int_equal(world->answer.function.line, 0);
}

static void test_what_is_no_elf_file(void **state)
{
    assert_int_equal(ask(*state, QUERY_SYMBOL, 0), -ENOENT);
    assert_int_equal(ask(*state, QUERY_SECTION, 0), -ENOENT);
    assert_int_equal(ask(*state, QUERY_NAME, MADE_GO_CODE), -ENOENT);
    assert_int_equal(ask(*state, QUERY_KINDS, 0), -ENOENT);
}

#define WITH_GO(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_GO(test_the_runtime),
        WITH_GO(test_a_function),
        WITH_GO(test_a_foreign_function),
        WITH_GO(test_what_is_no_elf_file),
    };
    return cmocka_run_group_tests_name("module_query", tests, NULL, NULL);
}
