/* Python threads in this process's memory, laid out as in CPython 3.11 to 3.13: words, by number.
 */
#include "runtime/python/thread_names.h"
#include "base/clock.h"
#include "unit.h"

#include <unistd.h>

#define THREADS 3
#define IDENTITY 0x7f0000001000ull
#define MODULES_AT 128
#define AT(object, bytes) (*(uint64_t *)((unsigned char *)(object) + (bytes)))
#define ADDRESS(object) ((uint64_t)(uintptr_t)(object))
#define VERSION_3_11 0x030b02f0u
#define VERSION_3_12 0x030c01f0u
#define VERSION_3_13 0x030d00f0u

static uint64_t runtime[64], interpreter[128], states[THREADS][64];
static uint64_t dicts[4][8], keys[4][32], module[4], text[4 + THREADS][16];
/* Objects begin at word four. */
static uint64_t objects[THREADS][16], values[THREADS][2], type[112];
static struct python_place place;
static struct python_memory memory;
static struct python_thread_names names;

static void set_text(uint64_t *object, const char *from)
{
    memset(object, 0, sizeof text[0]);
    AT(object, place.layout.text_length) = strlen(from);
    AT(object, place.layout.text_state) = 1u << 2 | 1u << 5 | 1u << 6;
    strcpy((char *)object + place.layout.ascii_text, from);
}

/* The kind of keys: 0 is general, 1 has strings, 2 has no values. */
static void set_keys(size_t i, unsigned char kind, uint64_t count)
{
    memset(keys[i], 0, sizeof keys[i]);
    ((unsigned char *)keys[i])[9] = 3;
    ((unsigned char *)keys[i])[10] = kind;
    keys[i][3] = count;
    dicts[i][4] = ADDRESS(keys[i]);
}

static void set_dict(size_t i, const char *name, const void *value)
{
    set_text(text[i], name);
    set_keys(i, 1, 1);
    keys[i][5] = ADDRESS(text[i]);
    keys[i][6] = ADDRESS(value);
}

static void set_thread(uint32_t version, size_t i, const char *name)
{
    uint64_t *object = objects[i] + 4, first = ADDRESS(values[i]);
    set_text(text[4 + i], name);
    object[1] = ADDRESS(type);
    values[i][1] = ADDRESS(text[4 + i]);
    if (version == VERSION_3_11) {
        object[-4] = first;
    } else if (version == VERSION_3_12) {
        object[-3] = first - 1;
    } else {
        object[2] = 1u << 24;
        object[4] = values[i][1];
    }
    keys[2][5 + 3 * i] = IDENTITY + i;
    keys[2][7 + 3 * i] = ADDRESS(object);
}

static void begin(uint32_t version)
{
    place = (struct python_place){
        ADDRESS(runtime), *python_layout_of(version == VERSION_3_11 ? version : VERSION_3_12)};
    memory = (struct python_memory){.layout = &place.layout, .version = version, .tid = getpid()};
    memset(objects, 0, sizeof objects);
    memset(states, 0, sizeof states);
    uint64_t modules = version == VERSION_3_11 ? 888 : version == VERSION_3_12 ? 944 : MODULES_AT;
    runtime[11] = MODULES_AT;
    AT(runtime, place.layout.runtime_interpreters) = ADDRESS(interpreter);
    AT(runtime, place.layout.runtime_interpreters + 8) = ADDRESS(interpreter);
    AT(interpreter, place.layout.interpreter_threads) = ADDRESS(states[0]);
    AT(interpreter, modules) = ADDRESS(dicts[0]);
    set_dict(0, "threading", module);
    set_dict(1, "_active", dicts[2]);
    module[2] = ADDRESS(dicts[1]);
    set_keys(2, 0, THREADS);
    set_keys(3, 2, 2); /* the class's keys: _target, _name */
    set_text(text[2], "_target");
    set_text(text[3], "_name");
    keys[3][5] = ADDRESS(text[2]);
    keys[3][7] = ADDRESS(text[3]);
    AT(type, version == VERSION_3_11 ? 872 : 880) = ADDRESS(keys[3]);
    AT(type, 168) = version == VERSION_3_13 ? 1u << 2 : 0;
    for (size_t i = 0; i < THREADS; i++) {
        AT(states[i], place.layout.thread_native_id) = 100 + i;
        AT(states[i], place.layout.thread_native_id - 8) = IDENTITY + i;
        AT(states[i], place.layout.thread_next) = i + 1 < THREADS ? ADDRESS(states[i + 1]) : 0;
    }
    set_thread(version, 0, "MainThread");
    set_thread(version, 1, "worker");
    set_thread(version, 2, "Thread-12 (work)");
}

static void read_names(void)
{
    assert_int_equal(python_thread_names_read(&names, place.runtime, &memory), 0);
}

static void test_each_version(void **state)
{
    static const uint32_t versions[] = {VERSION_3_11, VERSION_3_12, VERSION_3_13};
    (void)state;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        assert_true(python_thread_names_are_read(versions[i]));
        begin(versions[i]);
        read_names();
        assert_int_equal(names.count, THREADS);
        assert_string_equal(python_thread_names_find(&names, 101), "worker");
        assert_string_equal(python_thread_names_find(&names, 102), "Thread-12 (work)");
        assert_null(python_thread_names_find(&names, 99));
    }
    assert_false(python_thread_names_are_read(0x030a0000));
    assert_false(python_thread_names_are_read(0x030e00f0));
}

/* If the program has accessed __dict__, the dictionary shares the class's keys, and has values of
 * its own. */
static void test_a_dictionary_of_its_own(void **state)
{
    static uint64_t dict[8];
    (void)state;
    begin(VERSION_3_12);
    dict[4] = ADDRESS(keys[3]);
    dict[5] = ADDRESS(values[1]);
    objects[1][1] = ADDRESS(dict);
    read_names();
    assert_string_equal(python_thread_names_find(&names, 101), "worker");
}

static void test_hostile_threads(void **state)
{
    static const uint64_t wild[] = {0, 1, 8, UINT64_MAX, UINT64_MAX - 7, 1ull << 46};
    (void)state;
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++) {
        uint64_t *const words[] = {&objects[1][5], &objects[1][1],
                                   &values[1][1],  &keys[2][10],
                                   &keys[3][7],    &states[1][place.layout.thread_next / 8]};
        for (size_t j = 0; j < sizeof words / sizeof *words; j++) {
            begin(VERSION_3_12);
            *words[j] = wild[i];
            read_names();
            assert_true(names.count < THREADS);
        }
        begin(VERSION_3_12);
        keys[2][3] = wild[i];
        read_names();
        dicts[0][4] = wild[i];
        read_names();
        assert_int_equal(names.count, 0);
    }
}

/* The program may have a great many modules. */
static void test_there_is_no_time_for_all(void **state)
{
    enum { MODULES = 4096, ENTRY_WORDS = 2, HEAD_WORDS = 5 };
    (void)state;
    begin(VERSION_3_12);
    uint64_t *many = calloc(HEAD_WORDS + MODULES * ENTRY_WORDS, sizeof *many);
    assert_non_null(many);
    memcpy(many, keys[0], HEAD_WORDS * sizeof *many);
    many[3] = MODULES;
    for (size_t i = 0; i < MODULES; i++) {
        many[HEAD_WORDS + i * ENTRY_WORDS] = ADDRESS(text[i + 1 < MODULES ? 1 : 0]);
        many[HEAD_WORDS + i * ENTRY_WORDS + 1] = ADDRESS(module);
    }
    dicts[0][4] = ADDRESS(many);
    memory.until_ns = monotonic_ns() + 1000000;
    read_names();
    assert_int_equal(names.count, 0);
    memory.until_ns = 0;
    read_names();
    assert_int_equal(names.count, THREADS);
    free(many);
}

/* Cut between characters. */
static void test_long_names(void **state)
{
    char name[80] = "";
    (void)state;
    begin(VERSION_3_12);
    memset(name, 'x', 62);
    set_thread(VERSION_3_12, 1, name);
    /* Stored as one byte per character; this one takes two in UTF-8. */
    AT(text[5], place.layout.text_state) = 1u << 2 | 1u << 5;
    memset((char *)text[5] + place.layout.other_text, 'x', 62);
    ((unsigned char *)text[5])[place.layout.other_text + 62] = 0xe9;
    AT(text[5], place.layout.text_length) = 63;
    read_names();
    assert_string_equal(python_thread_names_find(&names, 101), name);
}

static void test_names_that_were_made_up(void **state)
{
    static const char *const all[][2] = {
        {"Thread-1", "Thread"},
        {"Thread-12 (work)", "Thread (work)"},
        {"Thread-", "Thread-"},
        {"Thread-x", "Thread-x"},
        {"Thread-1x", "Thread-1x"},
        {"pool-7", "pool-7"},
        {"T", "T"},
    };
    char name[PYTHON_THREAD_NAME_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        python_thread_name_join(all[i][0], name);
        assert_string_equal(name, all[i][1]);
    }
}

static int end(void **state)
{
    (void)state;
    python_thread_names_free(&names);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_version),    cmocka_unit_test(test_a_dictionary_of_its_own),
        cmocka_unit_test(test_hostile_threads), cmocka_unit_test(test_there_is_no_time_for_all),
        cmocka_unit_test(test_long_names),      cmocka_unit_test(test_names_that_were_made_up),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
