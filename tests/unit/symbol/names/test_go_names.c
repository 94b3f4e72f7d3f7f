/* Names from Go's function table. */
#include "make_pclntab.h"
#include "symbol/names/go_names.h"

static const struct made_function functions[] = {
    {.name = "main.main", .code_bytes = 0x40, .lines = {10, 12}},
    {.name = "main.(*Server).handle", .code_bytes = 0x80, .lines = {100, 90}, .has_inlined = true},
    {.name = "foreign", .code_bytes = 0x60, .is_foreign = true},
};

static struct made_go made;
static struct strings names;

static void open_names(void)
{
    make_go(&made, PCLNTAB_1_20, functions, 3);
}

static bool find(uint64_t address, struct symbol *symbol)
{
    return go_names_find(&made.module, address, &names, symbol);
}

static void close_names(void)
{
    strings_free(&names);
    made_go_free(&made);
}

static void assert_line(const struct symbol_line *line, const char *name, uint32_t number,
                        bool is_inlined)
{
    assert_string_equal(line->name, name);
    assert_string_equal(line->file, "/go/main.go");
    assert_int_equal(line->line, number);
    assert_int_equal(line->is_inlined, is_inlined);
}

static void test_a_function(void **state)
{
    (void)state;
    struct symbol symbol;
    open_names();
    assert_true(find(MADE_GO_CODE + 0x3f, &symbol));
    assert_int_equal(symbol.line_count, 1);
    assert_line(&symbol.lines[0], "main.main", 12, false);
    assert_int_equal(symbol.function_offset, 0x3f);
    assert_true(symbol.has_debug_info);
    close_names();
}

/* The address's line belongs to the inlined function; the outer function's line is that of the
 * call. */
static void test_an_inlined_function(void **state)
{
    (void)state;
    struct symbol symbol;
    open_names();
    /* A call at an address where nothing was inlined. */
    put_go32(&made, MADE_GO_INLINED + 0x10 + 8, 0x50);
    assert_true(find(MADE_GO_CODE + 0x50, &symbol));
    assert_int_equal(symbol.line_count, 2);
    assert_line(&symbol.lines[0], "main.inlined", 100, true);
    assert_line(&symbol.lines[1], "main.(*Server).handle", 90, false);
    assert_int_equal(symbol.function_offset, 0x10);
    close_names();
}

/* An inlined function that claims to be called from within itself. */
static void test_inlined_functions_in_a_circle(void **state)
{
    (void)state;
    struct symbol symbol;
    open_names();
    assert_true(find(MADE_GO_CODE + 0x50, &symbol));
    assert_int_equal(symbol.line_count, SYMBOL_LINES_MAX);
    assert_line(&symbol.lines[SYMBOL_LINES_MAX - 1], "main.(*Server).handle", 100, false);
    close_names();
}

static void test_foreign_code(void **state)
{
    (void)state;
    struct symbol symbol;
    open_names();
    assert_true(find(MADE_GO_CODE + 0xd0, &symbol));
    assert_int_equal(symbol.line_count, 1);
    assert_string_equal(symbol.lines[0].name, "foreign");
    assert_null(symbol.lines[0].file);
    assert_int_equal(symbol.lines[0].line, 0);
    assert_false(find(MADE_GO_CODE + 0x120, &symbol));
    assert_false(find(MADE_GO_CODE - 1, &symbol));
    close_names();
}

/* Inlined functions need the runtime's record about the file. */
static void test_without_inlined_functions(void **state)
{
    (void)state;
    struct symbol symbol;
    open_names();
    put_go64(&made, MADE_GO_MODULE, 0);
    assert_true(find(MADE_GO_CODE + 0x50, &symbol));
    assert_int_equal(symbol.line_count, 1);
    assert_line(&symbol.lines[0], "main.(*Server).handle", 100, false);
    assert_false(symbol.has_debug_info);
    close_names();
}

/* Named as in Go's own traces and profiles, whichever version of Go linked the program. */
static void test_generic_functions(void **state)
{
    (void)state;
    static const struct {
        const char *in_table, *shown;
    } cases[] = {
        {"main.F[...]", "main.F[...]"},
        {"main.F[go.shape.uint64]", "main.F[...]"},
        {"main.(*List[go.shape.[]uint8,go.shape.int]).Add", "main.(*List[...]).Add"},
        {"main.F[go.shape.struct { X []int }].func1", "main.F[...].func1"},
        {"main.F[T]", "main.F[T]"},
        {"main.F[", "main.F["},
        {"main.F]go.shape.int[", "main.F]go.shape.int["},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct made_function function = {
            .name = cases[i].in_table, .code_bytes = 0x40, .lines = {10, 12}};
        struct symbol symbol;
        make_go(&made, PCLNTAB_1_20, &function, 1);
        assert_true(find(MADE_GO_CODE, &symbol));
        assert_string_equal(symbol.lines[0].name, cases[i].shown);
        close_names();
    }
}

static void test_no_program_of_go(void **state)
{
    (void)state;
    struct symbol symbol;
    open_names();
    made.module.go = (struct go_traces){.has_sections = true};
    assert_false(find(MADE_GO_CODE, &symbol));
    close_names();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_function),
        cmocka_unit_test(test_an_inlined_function),
        cmocka_unit_test(test_inlined_functions_in_a_circle),
        cmocka_unit_test(test_foreign_code),
        cmocka_unit_test(test_without_inlined_functions),
        cmocka_unit_test(test_generic_functions),
        cmocka_unit_test(test_no_program_of_go),
    };
    return cmocka_run_group_tests_name("go_names", tests, NULL, NULL);
}
