/* Where threads come from, with stacks that need no module. */
#include "make_profile.h"
#include "count/deadlocks.h"
#include "count/waits.h"
#include "objects/source.h"
#include "profile/births.h"
#include "profile/makers.h"

enum { APP, OTHER }; /* processes */

struct tables {
    struct stack_table table;
    struct spaces spaces;
    struct strings strings;
    struct waits waits;
    struct deadlocks deadlocks;
    struct objects objects;
    uint32_t stack; /* of a thread that creates others */
};

static uint32_t string(struct tables *counted, const char *text)
{
    uint32_t id;
    assert_int_equal(strings_intern(&counted->strings, text, &id), 0);
    return id;
}

static int set_up(void **state)
{
    static const struct stack no_stack = {.cut = STACK_WHOLE};
    struct tables *counted = calloc(1, sizeof *counted);
    uint32_t process;
    *state = counted;
    return counted && !strings_init(&counted->strings) &&
                   !stack_table_add_process(&counted->table, 7, string(counted, "app"), &process) &&
                   !stack_table_add_process(&counted->table, 9, string(counted, "other"),
                                            &process) &&
                   !stack_table_add_stack(&counted->table, UINT32_MAX, &no_stack, &counted->stack)
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    struct tables *counted = *state;
    spaces_free(&counted->spaces);
    stack_table_free(&counted->table);
    strings_free(&counted->strings);
    waits_free(&counted->waits);
    deadlocks_free(&counted->deadlocks);
    objects_free(&counted->objects);
    free(counted);
    return 0;
}

static void add_sample_of(struct tables *counted, enum task_kind task, uint32_t tid)
{
    static const struct stack stack = {.cut = STACK_CUT_UNREADABLE};
    struct sample_labels labels = {
        .tid = tid, .syscall_number = -1, .thread_name = string(counted, "sampled"), .task = task};
    uint32_t sample;
    assert_int_equal(stack_table_add(&counted->table, UINT32_MAX, &stack, &labels, 1, 10, &sample),
                     0);
}

static void add_sample(struct tables *counted, uint32_t tid)
{
    add_sample_of(counted, TASK_THREAD, tid);
}

static void add_thread(struct tables *counted, uint32_t process, uint32_t tid, const char *name,
                       uint32_t maker, enum object_origin origin)
{
    const struct object_maker row = {
        .process = process,
        .stack = counted->stack,
        .kind = OBJECT_THREAD,
        .origin = (uint16_t)origin,
        .name = string(counted, name),
        .tid = tid,
        .maker = maker,
    };
    assert_int_equal(objects_made(&counted->objects, &row, tid, 1), 0);
}

static struct fgprof_profile *named(const struct tables *counted)
{
    const struct counted all = {
        .table = &counted->table,
        .waits = &counted->waits,
        .deadlocks = &counted->deadlocks,
        .spaces = &counted->spaces,
        .strings = &counted->strings,
    };
    struct name_sources sources = {.names = FGPROF_NAMES_SHORT};
    struct fgprof_profile *profile;
    assert_int_equal(reader_new(READER_LIMIT_MS, &sources.reader), 0);
    assert_int_equal(name_profile(&all, &sources, &profile), 0);
    assert_int_equal(name_births(profile, &all, &counted->objects, OBJECT_THREAD, &sources), 0);
    reader_free(sources.reader);
    return profile;
}

static const char *maker_of(const struct fgprof_profile *profile, uint32_t tid)
{
    const struct profile_birth *birth = birth_of(profile, tid);
    return birth ? strings_get(&profile->strings, birth->maker) : NULL;
}

static void test_makers_are_named(void **state)
{
    struct tables *counted = *state;
    add_thread(counted, APP, 7, "app", 0, ORIGIN_MAIN);
    add_thread(counted, APP, 23, "of-reader", 22, ORIGIN_LATER);
    add_thread(counted, APP, 22, "reader", 7, ORIGIN_SEEN);
    add_thread(counted, APP, 24, "unseen", 0, ORIGIN_UNSEEN);
    add_thread(counted, APP, 25, "without samples", 7, ORIGIN_SEEN);
    for (uint32_t tid = 7; tid <= 24; tid++)
        add_sample(counted, tid);
    struct fgprof_profile *profile = named(counted);
    assert_int_equal(profile->birth_count, 2);
    assert_string_equal(maker_of(profile, 22), "app/7");
    assert_string_equal(maker_of(profile, 23), "reader/22");
    assert_null(maker_of(profile, 7));
    assert_null(maker_of(profile, 24));
    assert_null(maker_of(profile, 25));
    assert_int_equal(profile->stack_count, 1);
    fgprof_profile_free(profile);
}

/* The agent reports ids of its own PID namespace. */
static void test_an_id_may_be_of_another_namespace(void **state)
{
    struct tables *counted = *state;
    add_thread(counted, APP, 7, "app", 0, ORIGIN_MAIN);
    add_thread(counted, OTHER, 20, "a", 7, ORIGIN_SEEN);
    add_thread(counted, OTHER, 21, "b", 3, ORIGIN_SEEN);
    add_thread(counted, OTHER, 9, "forked", 7, ORIGIN_SEEN);
    add_sample(counted, 9);
    add_sample(counted, 20);
    add_sample(counted, 21);
    struct fgprof_profile *profile = named(counted);
    assert_string_equal(maker_of(profile, 20), "another thread");
    assert_string_equal(maker_of(profile, 21), "another thread");
    assert_string_equal(maker_of(profile, 9), "app/7");
    fgprof_profile_free(profile);
}

static void test_an_id_is_that_of_its_last_thread(void **state)
{
    struct tables *counted = *state;
    add_thread(counted, APP, 7, "app", 0, ORIGIN_MAIN);
    add_thread(counted, APP, 22, "first", 7, ORIGIN_SEEN);
    add_thread(counted, APP, 22, "second", 23, ORIGIN_SEEN);
    add_thread(counted, APP, 23, "reader", 7, ORIGIN_SEEN);
    add_sample(counted, 22);
    struct fgprof_profile *profile = named(counted);
    assert_int_equal(profile->birth_count, 1);
    assert_string_equal(maker_of(profile, 22), "reader/23");
    fgprof_profile_free(profile);
}

static void test_threads_that_are_not_told_apart(void **state)
{
    struct tables *counted = *state;
    add_thread(counted, APP, 0, "app", 0, ORIGIN_SEEN);
    add_sample(counted, 0);
    struct fgprof_profile *profile = named(counted);
    assert_int_equal(profile->birth_count, 0);
    fgprof_profile_free(profile);
}

/* Goroutines and tasks have ids of their own, which threads without samples may have, too. */
static void test_ids_of_goroutines_and_tasks(void **state)
{
    struct tables *counted = *state;
    add_thread(counted, APP, 7, "app", 0, ORIGIN_MAIN);
    for (uint32_t tid = 22; tid <= 24; tid++)
        add_thread(counted, APP, tid, "reader", 7, ORIGIN_SEEN);
    add_sample_of(counted, TASK_GOROUTINE, 22);
    add_sample_of(counted, TASK_PYTHON, 23);
    add_sample_of(counted, TASK_GOROUTINE, 24);
    add_sample(counted, 24);
    struct fgprof_profile *profile = named(counted);
    assert_int_equal(profile->sample_count, 4);
    assert_int_equal(profile->birth_count, 1);
    assert_string_equal(maker_of(profile, 24), "app/7");
    fgprof_profile_free(profile);
}

static void assert_function(struct fgprof_profile *profile, const char *expected,
                            const uint32_t *locations, size_t depth)
{
    uint32_t stack;
    assert_int_equal(profile_add_stack(profile, locations, depth, &stack), 0);
    assert_string_equal(makers_main_function(profile, stack), expected);
}

static void test_the_function_that_is_told(void **state)
{
    (void)state;
    struct fgprof_profile *profile = make_profile();
    const struct made_line lines[] = {
        {"std::thread::thread", "/usr/include/c++/12/std_thread.h", 1, true},
        {"Pool::grow", "pool.cc", 5, true},
        {"main", "pool.cc", 9, false},
        {0}};
    uint32_t app = make_mapping(profile, 0x400000, "/srv/app", "");
    uint32_t library = make_mapping(profile, 0x500000, "/usr/lib/libstdc++.so.6", "");
    uint32_t start =
        make_function(profile, 0x500010, library, "std::thread::_M_start_thread", "", 0);
    uint32_t inlined = make_location(profile, 0x400010, app, 0, lines);
    uint32_t unnamed = make_location(profile, 0x400020, app, 0, NULL);
    uint32_t note;
    assert_int_equal(profile_add_note(profile, "[creator not seen]", &note), 0);
    assert_function(profile, "Pool::grow", (uint32_t[]){start, inlined}, 2);
    assert_function(profile, "std::thread::_M_start_thread", (uint32_t[]){start}, 1);
    assert_function(profile, "", (uint32_t[]){unnamed, note}, 2);
    assert_function(profile, "", &note, 1);
    fgprof_profile_free(profile);
}

#define WITH_COUNTED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_COUNTED(test_makers_are_named),
        WITH_COUNTED(test_an_id_may_be_of_another_namespace),
        WITH_COUNTED(test_an_id_is_that_of_its_last_thread),
        WITH_COUNTED(test_threads_that_are_not_told_apart),
        WITH_COUNTED(test_ids_of_goroutines_and_tasks),
        cmocka_unit_test(test_the_function_that_is_told),
    };
    return cmocka_run_group_tests_name("name_births", tests, NULL, NULL);
}
