/* Reading perf maps and jitdumps as they grow. */
#include "unit.h"
#include "make_jitdump.h"
#include "jit/source.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define TURN_BYTES (1 << 20)

struct world {
    struct jit_code code;
    struct jit_source source;
    int fd; /* the writer's descriptor */
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    *state = world;
    return jit_code_init(&world->code);
}

static int tear_down(void **state)
{
    struct world *world = *state;
    jit_source_close(&world->source);
    jit_code_free(&world->code);
    close(world->fd);
    free(world);
    return 0;
}

/* A file with these bytes, which the source opens separately. */
static void begin(struct world *world, const void *bytes, size_t length, bool is_dump)
{
    char path[32];
    world->fd = file_of(bytes, length);
    assert_int_equal(lseek(world->fd, 0, SEEK_END), length);
    snprintf(path, sizeof path, "/proc/self/fd/%d", world->fd);
    jit_source_open(&world->source, open(path, O_RDONLY), is_dump);
}

static void append(const struct world *world, const void *bytes, size_t length)
{
    assert_int_equal(write(world->fd, bytes, length), length);
}

static void read_all(struct world *world)
{
    struct jit_reading reading = {0};
    while (jit_source_has_more(&world->source)) {
        assert_int_equal(jit_source_read(&world->source, TURN_BYTES, &reading), 0);
        assert_int_equal(jit_source_take(&world->source, &reading, &world->code), 0);
        if (reading.is_at_end)
            break;
    }
    buffer_free(&reading.announced);
    assert_int_equal(jit_code_prepare(&world->code), 0);
    assert_int_equal(jit_code_apply(&world->code), 0);
}

static const struct jit_symbol *symbol_at(const struct world *world, uint64_t address)
{
    uint32_t number = jit_code_find(&world->code, address);
    return number == JIT_NO_SYMBOL ? NULL : &world->code.symbols[number];
}

static void assert_name(const struct world *world, uint64_t address, const char *name)
{
    const struct jit_symbol *symbol = symbol_at(world, address);
    assert_string_equal(symbol ? strings_get(&world->code.strings, symbol->name) : "-", name);
}

static void assert_line(const struct world *world, uint64_t address, const char *file,
                        uint32_t number)
{
    const struct jit_symbol *symbol = symbol_at(world, address);
    assert_non_null(symbol);
    const struct jit_line *line = jit_code_line(&world->code, symbol, address);
    if (!number) {
        assert_null(line);
        return;
    }
    assert_non_null(line);
    assert_int_equal(line->line, number);
    assert_string_equal(strings_get(&world->code.strings, line->file), file);
}

static void test_only_what_was_added_is_read(void **state)
{
    struct world *world = *state;
    begin(world, "1000 10 first\n2000 10 sec", 25, false);
    read_all(world);
    assert_name(world, 0x1000, "first");
    assert_name(world, 0x2000, "-");
    append(world, "ond\n3000 10 third\n", 18);
    read_all(world);
    assert_name(world, 0x2000, "second");
    assert_name(world, 0x3000, "third");
    assert_int_equal(world->code.symbol_count, 3);
    assert_int_equal(world->source.bytes_unread, 0);
}

/* Writers have buffers, so that a file mostly ends within a record. */
static void test_an_end_within_a_record_is_read_once(void **state)
{
    struct world *world = *state;
    struct jit_reading reading = {0};
    begin(world, "1000 10 first\n2000 10 sec", 25, false);
    read_all(world);
    assert_false(jit_source_has_more(&world->source));
    append(world, "o", 1);
    assert_true(jit_source_has_more(&world->source));
    /* What is written during a read may be missed. */
    append(world, "n", 1);
    assert_int_equal(jit_source_read(&world->source, TURN_BYTES, &reading), 0);
    assert_true(reading.is_at_end);
    append(world, "d\n", 2);
    assert_int_equal(jit_source_take(&world->source, &reading, &world->code), 0);
    assert_true(jit_source_has_more(&world->source));
    read_all(world);
    assert_name(world, 0x2000, "second");
    assert_false(jit_source_has_more(&world->source));
    buffer_free(&reading.announced);
}

static void test_one_that_is_written_anew(void **state)
{
    struct world *world = *state;
    begin(world, "1000 10 first\n2000 10 second\n", 29, false);
    read_all(world);
    assert_int_equal(ftruncate(world->fd, 0), 0);
    assert_int_equal(lseek(world->fd, 0, SEEK_SET), 0);
    append(world, "1000 10 third\n", 14);
    read_all(world);
    assert_name(world, 0x1000, "third");
    assert_name(world, 0x2000, "second");
}

#define TEMPORARY "/tmp/unit-jit-source-XXXXXX"

/* Makes a map with a line, and reads it. */
static void read_first(struct world *world, char *path)
{
    world->fd = mkstemp(path);
    assert_true(world->fd >= 0);
    append(world, "1000 10 first\n", 14);
    jit_source_open(&world->source, open(path, O_RDONLY), false);
    read_all(world);
}

/* It is looked at while it is empty, and then gets as long as it was. */
static void test_one_that_is_as_long_again(void **state)
{
    struct world *world = *state;
    char path[] = TEMPORARY;
    read_first(world, path);
    assert_int_equal(ftruncate(world->fd, 0), 0);
    assert_false(jit_source_has_more(&world->source));
    assert_int_equal(lseek(world->fd, 0, SEEK_SET), 0);
    append(world, "2000 9 second\n", 14);
    read_all(world);
    unlink(path);
    assert_name(world, 0x2000, "second");
}

static void test_a_deleted_one_is_closed(void **state)
{
    struct world *world = *state;
    char path[] = TEMPORARY;
    read_first(world, path);
    assert_true(world->source.is_open);
    unlink(path);
    append(world, "2000 10 last words\n", 19);
    read_all(world);
    assert_name(world, 0x2000, "last words");
    assert_false(jit_source_has_more(&world->source));
    assert_false(world->source.is_open);
}

/* Appends at least `bytes` bytes of entries to a map, 16 bytes of code apart. */
static uint64_t fill(const struct world *world, off_t bytes, int name_bytes)
{
    static char text[1 << 20];
    uint64_t number = 0;
    for (off_t written = 0; written < bytes;) {
        size_t length = 0;
        while (length < sizeof text - 2048)
            length += (size_t)sprintf(text + length, "%lx 10 function-%0*lu\n", number * 16,
                                      name_bytes, number),
                number++;
        append(world, text, length);
        written += (off_t)length;
    }
    return number;
}

static void test_of_a_huge_map_the_end_is_read(void **state)
{
    struct world *world = *state;
    world->fd = file_of_text("");
    uint64_t count = fill(world, 50 << 20, 200);
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", world->fd);
    jit_source_open(&world->source, open(path, O_RDONLY), false);
    read_all(world);
    assert_name(world, 0, "-");
    assert_non_null(symbol_at(world, 16 * count - 1));
    assert_true(world->source.bytes_unread > 1 << 20);
    /* What is appended is read too, up to a limit. */
    fill(world, 30 << 20, 250);
    uint64_t unread = world->source.bytes_unread;
    read_all(world);
    assert_true(world->source.is_full);
    assert_false(jit_source_has_more(&world->source));
    jit_source_close(&world->source);
    assert_in_range(world->source.bytes_unread - unread, 3 << 20, 20 << 20);
}

/* A program that generates code for ever: its map is read as long as the needed names fit. */
static void test_a_map_that_grows_without_end(void **state)
{
    struct world *world = *state;
    begin(world, "", 0, false);
    for (int round = 0; round < 3; round++) {
        struct renumber needed;
        fill(world, 30 << 20, 1000);
        read_all(world);
        assert_non_null(symbol_at(world, 16));
        assert_false(jit_source_has_more(&world->source));
        /* The next names are for the same code. */
        assert_int_equal(renumber_init(&needed, world->code.symbol_count), 0);
        assert_int_equal(jit_code_keep(&world->code, &needed), 0);
        renumber_free(&needed);
    }
    assert_false(world->source.is_spent || world->source.is_full);
    jit_source_close(&world->source);
    assert_int_equal(world->source.bytes_unread, 0);
}

static void test_too_many_names_end_it(void **state)
{
    struct world *world = *state;
    begin(world, "", 0, false);
    fill(world, 30 << 20, 1);
    read_all(world);
    assert_int_equal(world->code.symbol_count, JIT_SYMBOLS_MAX);
    assert_true(world->source.is_full);
    assert_false(jit_code_has_room(&world->code));
    jit_source_close(&world->source);
    assert_true(world->source.bytes_unread > 0);
}

/* Prints the speed with 200,000 lines, without judging it. */
static void test_many_lines(void **state)
{
    struct world *world = *state;
    struct timespec begin_time, read_time, end_time;
    uint64_t found = 0;
    begin(world, "", 0, false);
    uint64_t count = fill(world, 200000 * 60, 40);
    clock_gettime(CLOCK_MONOTONIC, &begin_time);
    read_all(world);
    clock_gettime(CLOCK_MONOTONIC, &read_time);
    for (uint64_t i = 0; i < count; i++)
        found += jit_code_find(&world->code, i * 7919 % count * 16 + 5) != JIT_NO_SYMBOL;
    clock_gettime(CLOCK_MONOTONIC, &end_time);
    assert_int_equal(found, count);
    double read_s = (double)(read_time.tv_sec - begin_time.tv_sec) +
                    (double)(read_time.tv_nsec - begin_time.tv_nsec) / 1e9;
    double find_s = (double)(end_time.tv_sec - read_time.tv_sec) +
                    (double)(end_time.tv_nsec - read_time.tv_nsec) / 1e9;
    print_message("%lu lines read in %.0f ms; a look-up takes %.0f ns\n", (unsigned long)count,
                  read_s * 1e3, find_s * 1e9 / (double)count);
}

static void test_a_dump(void **state)
{
    struct world *world = *state;
    struct made_dump made = {0};
    make_header(&made);
    make_lines(&made, 0x1000,
               (struct made_jit_line[]){
                   {0x1008, 8, "a.js"}, {0x1000, 7, "a.js"}, {0x1010, 9, "b.js"}, {0}});
    make_record(&made, 4, 32);
    make_load(&made, 0x1000, 0x20, 42, "lined");
    make_load(&made, 0x2000, 0x20, 43, "plain");
    make_lines(&made, 0x5000, (struct made_jit_line[]){{0x5000, 1, "other.js"}, {0}});
    make_load(&made, 0x3000, 0x20, 44, "after another's lines");
    make_move(&made, 0x1000, 0x4000, 0x20, 42);
    make_move(&made, 0x1000, 0x6000, 0x20, 77);
    size_t half = made.length - 100;
    begin(world, made.bytes, half, true);
    read_all(world);
    assert_false(jit_source_has_more(&world->source));
    assert_name(world, 0x4000, "-");
    append(world, made.bytes + half, made.length - half);
    read_all(world);
    assert_name(world, 0x1000, "lined");
    assert_line(world, 0x1000, "a.js", 7);
    assert_line(world, 0x100f, "a.js", 8);
    assert_line(world, 0x101f, "b.js", 9);
    assert_name(world, 0x2000, "plain");
    assert_line(world, 0x2000, "", 0);
    assert_name(world, 0x3000, "after another's lines");
    assert_line(world, 0x3000, "", 0);
    assert_name(world, 0x4000, "lined");
    assert_line(world, 0x4009, "a.js", 8);
    assert_name(world, 0x6000, "-");
    assert_false(jit_source_has_more(&world->source));
}

/* V8 adds 64, the size of an ELF header, to the addresses of all lines. */
static void test_lines_behind_an_elf_header(void **state)
{
    struct world *world = *state;
    struct made_dump made = {0};
    make_header(&made);
    make_lines(&made, 0x1000,
               (struct made_jit_line[]){{0x1040, 7, "a.js"}, {0x1048, 8, "a.js"}, {0}});
    make_load(&made, 0x1000, 0x20, 42, "f");
    begin(world, made.bytes, made.length, true);
    read_all(world);
    assert_line(world, 0x1007, "a.js", 7);
    assert_line(world, 0x1008, "a.js", 8);
    /* Another function's line in the first 64 bytes proves that they are not shifted. */
    made.length = 0;
    make_lines(&made, 0x2000, (struct made_jit_line[]){{0x2000, 9, "a.js"}, {0}});
    make_load(&made, 0x2000, 0x20, 43, "g");
    append(world, made.bytes, made.length);
    read_all(world);
    assert_line(world, 0x1007, "", 0);
    assert_line(world, 0x2000, "a.js", 9);
}

static void test_lines_that_lead_elsewhere(void **state)
{
    struct world *world = *state;
    struct made_dump made = {0};
    make_header(&made);
    make_lines(&made, 0x1000,
               (struct made_jit_line[]){{0x1000, 7, "a.js"}, {0xfff, 8, "a.js"}, {0}});
    make_load(&made, 0x1000, 0x20, 42, "f");
    begin(world, made.bytes, made.length, true);
    read_all(world);
    assert_name(world, 0x1000, "f");
    assert_line(world, 0x1000, "", 0);
}

static void test_a_broken_dump(void **state)
{
    struct world *world = *state;
    struct made_dump made = {0};
    make_header(&made);
    make_load(&made, 0x1000, 0x20, 42, "before");
    size_t whole = made.length;
    make_record(&made, 0, 0);
    make_load(&made, 0x2000, 0x20, 43, "after");
    begin(world, made.bytes, made.length, true);
    read_all(world);
    assert_name(world, 0x1000, "before");
    assert_name(world, 0x2000, "-");
    assert_false(jit_source_has_more(&world->source));
    jit_source_close(&world->source);
    assert_int_equal(world->source.bytes_unread, made.length - whole);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(test_only_what_was_added_is_read),
        WITH_WORLD(test_an_end_within_a_record_is_read_once),
        WITH_WORLD(test_one_that_is_written_anew),
        WITH_WORLD(test_one_that_is_as_long_again),
        WITH_WORLD(test_a_deleted_one_is_closed),
        WITH_WORLD(test_of_a_huge_map_the_end_is_read),
        WITH_WORLD(test_a_map_that_grows_without_end),
        WITH_WORLD(test_too_many_names_end_it),
        WITH_WORLD(test_many_lines),
        WITH_WORLD(test_a_dump),
        WITH_WORLD(test_lines_behind_an_elf_header),
        WITH_WORLD(test_lines_that_lead_elsewhere),
        WITH_WORLD(test_a_broken_dump),
    };
    return cmocka_run_group_tests_name("jit_source", tests, NULL, NULL);
}
