/* Records of a jitdump: complete, in the other byte order, broken, and still being written. */
#include "unit.h"
#include "make_jitdump.h"
#include "jit/jitdump.h"

static enum jitdump_result next(struct jitdump *dump, const struct made_dump *made, size_t at,
                                size_t length, struct jitdump_record *record, uint64_t *used)
{
    /* A block of exactly this size, so that a sanitizer detects reads beyond it. */
    uint8_t *copy = malloc(length ? length : 1);
    assert_non_null(copy);
    memcpy(copy, made->bytes + at, length);
    enum jitdump_result result = jitdump_next(dump, copy, length, made->length - at, record, used);
    free(copy);
    return result;
}

/* The state after the header has been read. */
static struct jitdump begun(const struct made_dump *made)
{
    struct jitdump dump = {0};
    struct jitdump_record record;
    uint64_t used;
    assert_int_equal(jitdump_next(&dump, made->bytes, made->length, made->length, &record, &used),
                     JITDUMP_RECORD);
    assert_int_equal(record.kind, JITDUMP_OTHER);
    assert_int_equal(used, MADE_HEADER_BYTES);
    return dump;
}

static struct jitdump_record taken(struct jitdump *dump, const struct made_dump *made, size_t *at)
{
    struct jitdump_record record;
    uint64_t used;
    assert_int_equal(jitdump_next(dump, made->bytes + *at, made->length - *at, made->length - *at,
                                  &record, &used),
                     JITDUMP_RECORD);
    *at += used;
    return record;
}

static void test_records(void **state)
{
    (void)state;
    for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
        struct made_dump made = {.is_swapped = is_swapped};
        make_header(&made);
        make_lines(&made, 0x1000,
                   (struct made_jit_line[]){
                       {0x1000, 7, "a.js"}, {0x1008, 8, "\xff"}, {0x1010, 9, "b.js"}, {0}});
        make_load(&made, 0x1000, 0x20, 42, "first one");
        make_record(&made, 4, 32);
        make_move(&made, 0x1000, 0x2000, 0x20, 42);
        make_record(&made, 3, 16);
        struct jitdump dump = begun(&made);
        size_t at = MADE_HEADER_BYTES;
        struct jitdump_record record = taken(&dump, &made, &at);
        struct jitdump_line line;
        assert_int_equal(record.kind, JITDUMP_LINES);
        assert_int_equal(record.start, 0x1000);
        for (unsigned i = 0; i < 3; i++) {
            assert_true(jitdump_next_line(&record, &line));
            assert_int_equal(line.address, 0x1000 + 8 * i);
            assert_int_equal(line.line, 7 + i);
            assert_int_equal(line.file_bytes, 4);
            assert_memory_equal(line.file, i < 2 ? "a.js" : "b.js", 4);
        }
        assert_false(jitdump_next_line(&record, &line));
        assert_int_equal(record.line_count, 0);
        record = taken(&dump, &made, &at);
        assert_int_equal(record.kind, JITDUMP_LOAD);
        assert_int_equal(record.start, 0x1000);
        assert_int_equal(record.size, 0x20);
        assert_int_equal(record.id, 42);
        assert_int_equal(record.name_bytes, 9);
        assert_memory_equal(record.name, "first one", 9);
        assert_int_equal(taken(&dump, &made, &at).kind, JITDUMP_OTHER);
        record = taken(&dump, &made, &at);
        assert_int_equal(record.kind, JITDUMP_MOVE);
        assert_int_equal(record.start, 0x2000);
        assert_int_equal(record.size, 0x20);
        assert_int_equal(record.id, 42);
        assert_int_equal(taken(&dump, &made, &at).kind, JITDUMP_OTHER);
        assert_int_equal(at, made.length);
    }
}

static void test_what_is_not_whole_is_waited_for(void **state)
{
    (void)state;
    struct made_dump made = {0};
    struct jitdump_record record;
    uint64_t used;
    make_header(&made);
    for (size_t length = 0; length < MADE_HEADER_BYTES; length++) {
        struct jitdump dump = {0};
        made.length = length;
        assert_int_equal(next(&dump, &made, 0, length, &record, &used), JITDUMP_NEEDS_MORE);
        assert_false(dump.has_header);
    }
    made.length = MADE_HEADER_BYTES;
    make_load(&made, 0x1000, 0x20, 42, "first");
    struct jitdump dump = begun(&made);
    size_t whole = made.length;
    for (made.length = MADE_HEADER_BYTES; made.length < whole; made.length++) {
        assert_int_equal(
            next(&dump, &made, MADE_HEADER_BYTES, made.length - MADE_HEADER_BYTES, &record, &used),
            JITDUMP_NEEDS_MORE);
    }
    assert_int_equal(
        next(&dump, &made, MADE_HEADER_BYTES, made.length - MADE_HEADER_BYTES, &record, &used),
        JITDUMP_RECORD);
}

/* The code behind a name need not be in memory, only in the file. */
static void test_code_is_not_looked_at(void **state)
{
    (void)state;
    struct made_dump made = {0};
    struct jitdump_record record;
    uint64_t used;
    make_header(&made);
    make_load(&made, 0x1000, 0x5000, 42, "long");
    struct jitdump dump = begun(&made);
    assert_int_equal(next(&dump, &made, MADE_HEADER_BYTES, 0x2000, &record, &used), JITDUMP_RECORD);
    assert_int_equal(record.kind, JITDUMP_LOAD);
    assert_int_equal(used, made.length - MADE_HEADER_BYTES);
    made.length--;
    assert_int_equal(next(&dump, &made, MADE_HEADER_BYTES, 0x2000, &record, &used),
                     JITDUMP_NEEDS_MORE);
}

static void test_no_jitdump(void **state)
{
    (void)state;
    for (size_t at = 0; at < 12; at += 4) {
        struct made_dump made = {0};
        struct jitdump dump = {0};
        struct jitdump_record record;
        uint64_t used;
        make_header(&made);
        memcpy(made.bytes + at, at == 8 ? "\x27\0\0" : "abc", 4); /* size, else magic or version */
        assert_int_equal(next(&dump, &made, 0, made.length, &record, &used), JITDUMP_BROKEN);
    }
}

static void test_broken_records(void **state)
{
    (void)state;
    struct made_dump made = {0};
    struct jitdump_record record;
    uint64_t used;
    make_header(&made);
    make_record(&made, 0, 16);
    make_record(&made, 1, 63);
    make_record(&made, 2, 31);
    make_record(&made, 77, 16);
    make_load(&made, 0x1000, 0x20, 42, "");
    make_load_of_size(&made, 0x1000, UINT64_MAX - 0xfff, "to the end");
    make_load_of_size(&made, 0x1000, UINT64_MAX - 0x1000, "almost");
    make_record(&made, 0, 15);
    struct jitdump dump = begun(&made);
    size_t at = MADE_HEADER_BYTES;
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(taken(&dump, &made, &at).kind, JITDUMP_OTHER);
    assert_int_equal(taken(&dump, &made, &at).kind, JITDUMP_LOAD);
    assert_int_equal(next(&dump, &made, at, made.length - at, &record, &used), JITDUMP_BROKEN);
}

static void test_broken_lines(void **state)
{
    (void)state;
    struct made_dump made = {0};
    struct jitdump_line line;
    make_header(&made);
    make_lines(&made, 0x1000, (struct made_jit_line[]){{0x1000, 7, "\xff"}, {0}});
    make_lines(&made, 0x1000, (struct made_jit_line[]){{0x1000, 7, "a"}, {0x1001, 8, "b"}, {0}});
    struct jitdump dump = begun(&made);
    size_t at = MADE_HEADER_BYTES;
    struct jitdump_record record = taken(&dump, &made, &at);
    assert_false(jitdump_next_line(&record, &line)); /* the file of the line before, of which there
                                                        is none */
    assert_int_equal(record.line_count, 1);
    record = taken(&dump, &made, &at);
    record.line_count++;
    assert_true(jitdump_next_line(&record, &line));
    assert_true(jitdump_next_line(&record, &line));
    assert_false(jitdump_next_line(&record, &line)); /* fewer than the record claims */
    assert_int_equal(record.line_count, 1);
    /* The last name does not end within the record. */
    at = made.length - 1;
    made.bytes[at] = 'b';
    at = MADE_HEADER_BYTES;
    taken(&dump, &made, &at);
    record = taken(&dump, &made, &at);
    assert_true(jitdump_next_line(&record, &line));
    assert_false(jitdump_next_line(&record, &line));
    assert_int_equal(record.line_count, 1);
}

static void test_too_many_lines(void **state)
{
    (void)state;
    struct made_dump made = {0};
    struct jitdump_record record;
    uint64_t used;
    make_header(&made);
    struct jitdump dump = begun(&made);
    make_record(&made, 2, 32);
    uint32_t claimed = JITDUMP_BUFFER_BYTES + 1;
    memcpy(made.bytes + MADE_HEADER_BYTES + 4, &claimed, sizeof claimed);
    assert_int_equal(
        jitdump_next(&dump, made.bytes + MADE_HEADER_BYTES, 32, claimed, &record, &used),
        JITDUMP_RECORD);
    assert_true(record.is_too_long);
    assert_int_equal(record.kind, JITDUMP_OTHER);
    assert_int_equal(used, claimed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_what_is_not_whole_is_waited_for),
        cmocka_unit_test(test_code_is_not_looked_at),
        cmocka_unit_test(test_no_jitdump),
        cmocka_unit_test(test_broken_records),
        cmocka_unit_test(test_broken_lines),
        cmocka_unit_test(test_too_many_lines),
    };
    return cmocka_run_group_tests_name("jitdump", tests, NULL, NULL);
}
