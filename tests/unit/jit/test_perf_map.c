/* Reading perf maps: lines that are complete, broken, long, or still being written. */
#include "unit.h"
#include "jit/perf_map.h"

#include <stdio.h>

struct read_entry {
    uint64_t start, size;
    char name[64];
    size_t name_bytes;
};

struct readings {
    struct read_entry items[8];
    size_t count;
};

static void visit(void *context, const struct perf_map_entry *entry)
{
    struct readings *readings = context;
    assert_true(readings->count < 8);
    struct read_entry *item = &readings->items[readings->count++];
    item->start = entry->start;
    item->size = entry->size;
    item->name_bytes = entry->name_bytes;
    snprintf(item->name, sizeof item->name, "%.*s", (int)entry->name_bytes, entry->name);
}

/* Reads from a block of exactly this size, so that a sanitizer detects reads beyond it. */
static size_t feed(struct perf_map *map, const char *text, size_t bytes, struct readings *readings)
{
    char *copy = malloc(bytes + 1);
    assert_non_null(copy);
    memcpy(copy, text, bytes);
    copy = realloc(copy, bytes ? bytes : 1);
    assert_non_null(copy);
    size_t used = perf_map_read(map, copy, bytes, visit, readings);
    free(copy);
    return used;
}

static void assert_entry(const struct readings *readings, size_t number, uint64_t start,
                         uint64_t size, const char *name)
{
    assert_true(number < readings->count);
    assert_int_equal(readings->items[number].start, start);
    assert_int_equal(readings->items[number].size, size);
    assert_string_equal(readings->items[number].name, name);
}

static void assert_parses(const char *line, uint64_t start, uint64_t size, const char *name)
{
    struct perf_map_entry entry;
    assert_true(perf_map_parse_line(line, strlen(line), &entry));
    assert_int_equal(entry.start, start);
    assert_int_equal(entry.size, size);
    assert_int_equal(entry.name_bytes, strlen(name));
    assert_memory_equal(entry.name, name, entry.name_bytes);
}

static void assert_ignored(const char *line)
{
    struct perf_map_entry entry;
    assert_false(perf_map_parse_line(line, strlen(line), &entry));
}

static void test_lines(void **state)
{
    (void)state;
    assert_parses("7f52a40012c0 1a4 LazyCompile:*handle /srv/app.js:10:3", 0x7f52a40012c0, 0x1a4,
                  "LazyCompile:*handle /srv/app.js:10:3");
    assert_parses("0x7F52A40012C0 0X1A4 f", 0x7f52a40012c0, 0x1a4, "f");
    assert_parses("1000 10 two words ", 0x1000, 0x10, "two words ");
    assert_parses("1000  \t10  f", 0x1000, 0x10, "f");
    assert_parses("1000 10 dos\r", 0x1000, 0x10, "dos");
    assert_parses("0000000000000000001000 10 f", 0x1000, 0x10, "f");
    assert_parses("fffffffffffffff0 f last", 0xfffffffffffffff0, 0xf, "last");
    assert_parses("0 10 at zero", 0, 0x10, "at zero");
}

static void test_what_is_no_entry(void **state)
{
    (void)state;
    assert_ignored("");
    assert_ignored("\r");
    assert_ignored("1000");
    assert_ignored("1000 10");
    assert_ignored("1000 10 ");
    assert_ignored("1000 10 \r");
    assert_ignored(" 1000 10 f");
    assert_ignored("0x 10 f");
    assert_ignored("1000 size f");
    assert_ignored("-1000 10 f");
    assert_ignored("1000,10,f");
    assert_ignored("1000 0 no size");
    assert_ignored("fffffffffffffff0 10 ends beyond all addresses");
    assert_ignored("10000000000000000 10 seventeen digits");
    assert_ignored("1000 fffffffffffffffff f");
}

static void test_reading_goes_on_where_it_left_off(void **state)
{
    (void)state;
    static const char text[] = "1000 10 first\nbroken\n2000 20 second\r\n3000 30 third\n4000 4";
    const size_t whole = strrchr(text, '\n') + 1 - text;
    /* The text is written in two parts, cut anywhere, and read after each. */
    for (size_t cut = 0; cut <= sizeof text - 1; cut++) {
        struct perf_map map = {0};
        struct readings readings = {0};
        size_t used = feed(&map, text, cut, &readings);
        assert_true(used <= cut);
        used += feed(&map, text + used, sizeof text - 1 - used, &readings);
        assert_int_equal(used, whole);
        assert_int_equal(readings.count, 3);
        assert_entry(&readings, 0, 0x1000, 0x10, "first");
        assert_entry(&readings, 1, 0x2000, 0x20, "second");
        assert_entry(&readings, 2, 0x3000, 0x30, "third");
    }
}

/* A line of `bytes` bytes, followed by `rest`, which may begin with its line feed. */
static char *long_line(size_t bytes, const char *rest)
{
    char *text = malloc(bytes + strlen(rest) + 1);
    assert_non_null(text);
    memset(text, 'n', bytes);
    memcpy(text, "1000 10 ", 8);
    strcpy(text + bytes, rest);
    return text;
}

static void test_a_long_line_is_cut(void **state)
{
    (void)state;
    for (size_t bytes = PERF_MAP_LINE_MAX - 2; bytes < PERF_MAP_LINE_MAX + 3; bytes++) {
        struct perf_map map = {0};
        struct readings readings = {0};
        char *text = long_line(bytes, "\n2000 20 next\n");
        assert_int_equal(feed(&map, text, strlen(text), &readings), strlen(text));
        assert_int_equal(readings.count, 2);
        size_t most = bytes < PERF_MAP_LINE_MAX ? bytes : PERF_MAP_LINE_MAX;
        assert_int_equal(readings.items[0].name_bytes, most - 8);
        assert_entry(&readings, 1, 0x2000, 0x20, "next");
        free(text);
    }
}

static void test_a_line_without_end_is_skipped_in_parts(void **state)
{
    (void)state;
    struct perf_map map = {0};
    struct readings readings = {0};
    char *text = long_line(100000, "");
    assert_int_equal(feed(&map, text, 100000, &readings), 100000);
    assert_int_equal(feed(&map, text + 8, 90000, &readings), 90000);
    assert_int_equal(readings.count, 1);
    assert_int_equal(feed(&map, "nn\n2000 20 next\n", 16, &readings), 16);
    assert_int_equal(readings.count, 2);
    assert_entry(&readings, 1, 0x2000, 0x20, "next");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_what_is_no_entry),
        cmocka_unit_test(test_reading_goes_on_where_it_left_off),
        cmocka_unit_test(test_a_long_line_is_cut),
        cmocka_unit_test(test_a_line_without_end_is_skipped_in_parts),
    };
    return cmocka_run_group_tests_name("perf_map", tests, NULL, NULL);
}
