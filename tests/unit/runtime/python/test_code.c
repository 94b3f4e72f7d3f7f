#include "runtime/python/code.h"
#include "unit.h"

#define TYPE 0x1234567890u

/* The layout of CPython 3.12's objects, as far as they are read. */
struct text {
    uint64_t head[2], length, hash;
    uint32_t state, unused;
    union {
        char ascii[40];
        struct {
            uint64_t more[2];
            unsigned char bytes[40];
        } other;
    };
};
struct bytes {
    uint64_t head[2], length, hash;
    unsigned char data[64];
};
static unsigned char object[0xc0];
static struct text name, file;
static struct bytes lines;
static struct python_memory memory;

static void put(size_t at, const void *value, size_t bytes)
{
    memcpy(object + at, value, bytes);
}

static void put_address(size_t at, const void *address)
{
    uint64_t value = (uintptr_t)address;
    put(at, &value, sizeof value);
}

static void set_ascii(struct text *text, const char *value)
{
    *text = (struct text){.length = strlen(value), .state = 1u << 2 | 1u << 5 | 1u << 6};
    strcpy(text->ascii, value);
}

/* `each`: bytes per character. */
static void set_other(struct text *text, unsigned each, const void *value, size_t length)
{
    *text = (struct text){.length = length, .state = each << 2 | 1u << 5};
    memcpy(text->other.bytes, value, each * length);
}

static void begin(void)
{
    const struct python_layout *layout = python_layout_of(0x030c01f0);
    uint64_t type = TYPE;
    uint32_t first_line = 10;
    assert_non_null(layout);
    memory = (struct python_memory){.layout = layout, .code_type = TYPE, .tid = getpid()};
    set_ascii(&name, "Server.handle");
    set_ascii(&file, "/srv/app.py");
    lines = (struct bytes){.length = 2, .data = {0x80, 0}};
    put(layout->object_type, &type, sizeof type);
    put(layout->code_first_line, &first_line, sizeof first_line);
    put_address(layout->code_qualname, &name);
    put_address(layout->code_filename, &file);
    put_address(layout->code_lines, &lines);
}

static struct python_code read_all(void)
{
    struct python_code_head head;
    struct python_code code;
    assert_true(python_code_read_head(&memory, (uintptr_t)object, &head));
    assert_int_equal(python_code_read(&memory, &head, &code), 0);
    return code;
}

static void test_a_code_object(void **state)
{
    (void)state;
    begin();
    struct python_code code = read_all();
    assert_string_equal(code.name, "Server.handle");
    assert_string_equal(code.file, "/srv/app.py");
    assert_int_equal(code.head.first_line, 10);
    assert_int_equal(code.line_bytes, 2);
    free(code.lines);
}

static void test_what_is_no_code_object(void **state)
{
    (void)state;
    struct python_code_head head;
    begin();
    object[memory.layout->object_type]++;
    assert_false(python_code_read_head(&memory, (uintptr_t)object, &head));
    assert_false(python_code_read_head(&memory, 16, &head));
    assert_false(python_code_read_head(&memory, 0, &head));
    memory.code_type = 0; /* without it, any object is accepted */
    assert_true(python_code_read_head(&memory, (uintptr_t)object, &head));
}

static void test_characters_of_each_width(void **state)
{
    (void)state;
    const uint16_t two[] = {'a', 0x4e16, 0xd800};
    const uint32_t four[] = {0x1f40d, 0x110000, 'z'};
    begin();
    set_other(&name, 1, "caf\xe9", 4);
    set_other(&file, 2, two, 3);
    struct python_code code = read_all();
    assert_string_equal(code.name, "caf\xc3\xa9");
    assert_string_equal(code.file, "a\xe4\xb8\x96\xef\xbf\xbd");
    free(code.lines);
    set_other(&name, 4, four, 3);
    code = read_all();
    assert_string_equal(code.name, "\xf0\x9f\x90\x8d\xef\xbf\xbdz");
    free(code.lines);
}

static void test_text_that_makes_no_sense(void **state)
{
    (void)state;
    begin();
    name.length = 1ull << 40;
    file.state = 3u << 2 | 1u << 5;
    lines.length = 1ull << 50;
    struct python_code code = read_all();
    assert_string_equal(code.name, "");
    assert_string_equal(code.file, "");
    assert_true(code.line_bytes <= PYTHON_LINES_BYTES_MAX);
    free(code.lines);
}

static void test_text_that_is_too_long(void **state)
{
    (void)state;
    static struct {
        struct text text;
        unsigned char rest[PYTHON_TEXT_BYTES];
    } has_more;
    begin();
    set_ascii(&has_more.text, "Server.handle");
    memset(has_more.rest, 'x', sizeof has_more.rest); /* only pages in memory are read */
    has_more.text.length = 1000;                      /* as much as fits is read */
    put_address(memory.layout->code_qualname, &has_more);
    struct python_code code = read_all();
    assert_memory_equal(code.name, "Server.handle", strlen("Server.handle"));
    assert_in_range(strlen(code.name), PYTHON_TEXT_BYTES - 8, PYTHON_TEXT_BYTES - 1);
    free(code.lines);
}

/* Python 3.11's line table of
 *     def f(a,
 *           b):
 *         x = [i for i in
 *              a]
 *
 *         if a:
 *             return (a +
 *                     b)
 *         for i in range(3):
 *             g(i,
 *               x)
 * and the result of its co_lines(). */
static void test_lines_of_a_function(void **state)
{
    (void)state;
    static unsigned char table[] = {
        128, 0,  240, 4,   1,   9,   12, 240, 0,   1,   9,   12,  216, 9,   10,  240, 3,
        1,   9,  12,  241, 0,   1,   9,  12,  244, 0,   1,   9,   12,  128, 65,  240, 6,
        0,   8,  9,   240, 0,   2,   5,  19,  216, 16,  17,  216, 16,  17,  241, 3,   1,
        17,  18, 240, 0,   1,   9,   19, 229, 13,  18,  144, 49,  137, 88,  140, 88,  240,
        0,   2,  5,   13,  240, 0,   2,  5,   13,  136, 1,   221, 8,   9,   136, 33,  216,
        10,  11, 241, 3,   1,   9,   13, 244, 0,   1,   9,   13,  240, 0,   1,   9,   13,
        240, 0,  1,   9,   13,  240, 3,  2,   5,   13,  240, 0,   2,   5,   13};
    static const struct {
        unsigned start, end, line;
    } truth[] = {{0, 2, 1},    {2, 6, 3},     {6, 8, 4},     {8, 26, 3},   {26, 30, 6},
                 {30, 32, 7},  {32, 34, 8},   {34, 40, 7},   {40, 74, 9},  {74, 88, 10},
                 {88, 90, 11}, {90, 108, 10}, {108, 112, 9}, {112, 120, 0}};
    const struct python_code code = {
        .head = {.first_line = 1}, .lines = table, .line_bytes = sizeof table};
    for (size_t i = 0; i < sizeof truth / sizeof *truth; i++) {
        for (unsigned at = truth[i].start; at < truth[i].end; at++)
            assert_int_equal(python_code_line(&code, at), truth[i].line);
    }
}

static void test_lines_of_other_forms(void **state)
{
    (void)state;
    static unsigned char table[] = {
        0x80 | 13 << 3 | 0, 0x48, 0x03, /* without columns: 200, so the line number grows by 100 */
        0x80 | 15 << 3 | 1,             /* two units without a line */
        0x80 | 13 << 3 | 0, 0x03,       /* back by one line */
        0x80 | 13 << 3 | 0, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f,
    };
    const struct python_code code = {
        .head = {.first_line = 5}, .lines = table, .line_bytes = sizeof table};
    assert_int_equal(python_code_line(&code, 0), 105);
    assert_int_equal(python_code_line(&code, 2), 0);
    assert_int_equal(python_code_line(&code, 5), 0);
    assert_int_equal(python_code_line(&code, 6), 104);
    assert_int_equal(python_code_line(&code, 8), 0); /* an impossible line number */
    assert_int_equal(python_code_line(&code, 1ull << 60), 0);
    const struct python_code without = {.head = {.first_line = 5}};
    assert_int_equal(python_code_line(&without, 0), 0);
}

/* The same function in 3.10 and 3.9, with a call in try, and one in finally at the end. */
static void test_lines_before_3_11(void **state)
{
    (void)state;
    static unsigned char table[] = {6,  2, 2, 1, 6, 255, 4, 3,   2, 1, 2,  1, 4,  255,
                                    12, 2, 4, 1, 2, 1,   6, 255, 2, 2, 12, 1, 26, 2};
    static unsigned char lnotab[] = {0, 2, 6,  1, 2, 255, 6, 3,   4, 1, 2, 1, 2,  255,
                                     4, 2, 12, 1, 4, 1,   2, 255, 6, 2, 2, 1, 12, 2};
    static const struct {
        unsigned start, line;
    } truth[][16] = {{{0, 3},
                      {6, 4},
                      {8, 3},
                      {14, 6},
                      {18, 7},
                      {20, 8},
                      {22, 7},
                      {26, 9},
                      {38, 10},
                      {42, 11},
                      {44, 10},
                      {50, 12},
                      {52, 13},
                      {64, 15},
                      {90, 0}},
                     {{0, 3},
                      {6, 4},
                      {8, 3},
                      {14, 6},
                      {18, 7},
                      {20, 8},
                      {22, 7},
                      {26, 9},
                      {38, 10},
                      {42, 11},
                      {44, 10},
                      {50, 12},
                      {52, 13},
                      {64, 15},
                      {92, 15}}};
    const struct python_code codes[] = {{.head = {.first_line = 1},
                                         .line_table = PYTHON_LINE_TABLE,
                                         .lines = table,
                                         .line_bytes = sizeof table},
                                        {.head = {.first_line = 1},
                                         .line_table = PYTHON_LNOTAB,
                                         .lines = lnotab,
                                         .line_bytes = sizeof lnotab}};
    for (size_t i = 0; i < 2; i++) {
        for (size_t row = 0; row < 14; row++) {
            for (unsigned at = truth[i][row].start; at < truth[i][row + 1].start; at++)
                assert_int_equal(python_code_line(&codes[i], at), truth[i][row].line);
        }
        assert_int_equal(python_code_line(&codes[i], truth[i][14].start), truth[i][14].line);
    }
}

/* Lines that are far apart, and code without a line number. */
static void test_growth_in_parts_before_3_11(void **state)
{
    (void)state;
    static unsigned char table[] = {4, 1, 0, 127, 0, 127, 4, 47, 2, 128, 2, 0x9d, 2};
    static unsigned char lnotab[] = {0, 1, 4, 127, 0, 127, 0, 47, 2, 0x9d, 2};
    struct python_code code = {.head = {.first_line = 1},
                               .line_table = PYTHON_LINE_TABLE,
                               .lines = table,
                               .line_bytes = sizeof table};
    assert_int_equal(python_code_line(&code, 3), 2);
    assert_int_equal(python_code_line(&code, 4), 303);
    assert_int_equal(python_code_line(&code, 8), 0);
    assert_int_equal(python_code_line(&code, 10), 204);
    assert_int_equal(python_code_line(&code, 12), 0);
    code = (struct python_code){.head = {.first_line = 1},
                                .line_table = PYTHON_LNOTAB,
                                .lines = lnotab,
                                .line_bytes = sizeof lnotab};
    assert_int_equal(python_code_line(&code, 3), 2);
    assert_int_equal(python_code_line(&code, 4), 303);
    assert_int_equal(python_code_line(&code, 6), 204);
    code.line_bytes = 0;
    assert_int_equal(python_code_line(&code, 6), 1);
}

static void test_offsets_of_instructions(void **state)
{
    (void)state;
    const struct python_layout *new = python_layout_of(0x030b02f0);
    const struct python_layout *three_ten = python_layout_of(0x030a0000);
    const struct python_layout *three_nine = python_layout_of(0x03090000);
    uint64_t first = 0x1000 + new->code_instructions;
    assert_int_equal(python_code_offset(new, 0x1000, first + 6), 6);
    assert_int_equal(python_code_offset(new, 0x1000, first - 2), 0);
    /* The bytes after f_lasti were read with it. */
    assert_int_equal(python_code_offset(three_ten, 0x1000, 7ull << 32 | 3), 6);
    assert_int_equal(python_code_offset(three_nine, 0x1000, 7ull << 32 | 6), 6);
    assert_int_equal(python_code_offset(three_nine, 0x1000, 7ull << 32 | UINT32_MAX), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_code_object),
        cmocka_unit_test(test_what_is_no_code_object),
        cmocka_unit_test(test_characters_of_each_width),
        cmocka_unit_test(test_text_that_makes_no_sense),
        cmocka_unit_test(test_text_that_is_too_long),
        cmocka_unit_test(test_lines_of_a_function),
        cmocka_unit_test(test_lines_of_other_forms),
        cmocka_unit_test(test_lines_before_3_11),
        cmocka_unit_test(test_growth_in_parts_before_3_11),
        cmocka_unit_test(test_offsets_of_instructions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
