#include "unit.h"
#include "count/objects.h"

#include <stdlib.h>
#include <string.h>

#define KIND 2
#define MANY 5000u

static struct object_maker maker(uint32_t process, uint32_t stack, uint64_t bytes)
{
    return (struct object_maker){.process = process, .kind = KIND, .stack = stack, .bytes = bytes};
}

static void make(struct objects *objects, struct object_maker maker, uint64_t key, uint32_t weight)
{
    assert_int_equal(objects_made(objects, &maker, key, weight), 0);
}

static void assert_counted(const struct objects *objects, size_t row, uint64_t made, uint64_t gone)
{
    assert_true(row < objects->maker_count);
    assert_int_equal(objects->makers[row].made, made);
    assert_int_equal(objects->makers[row].gone, gone);
}

static void test_equal_makers_are_one_row(void **state)
{
    (void)state;
    struct objects objects = {0};
    struct object_maker others[7];
    for (size_t i = 0; i < 7; i++)
        others[i] = maker(1, 1, 8);
    others[1].process++;
    others[2].stack++;
    others[3].kind++;
    others[4].name++;
    others[5].tid++;
    others[6].bytes++;
    for (uint64_t round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < 7; i++)
            make(&objects, others[i], 100 * i + round, 1);
    }
    assert_int_equal(objects.maker_count, 7);
    for (size_t i = 0; i < 7; i++)
        assert_counted(&objects, i, 2, 0);
    objects_free(&objects);
}

static void test_object_goes_once(void **state)
{
    (void)state;
    struct objects objects = {0};
    objects_gone(&objects, 1, KIND, 10); /* made before the recording */
    make(&objects, maker(1, 1, 8), 10, 3);
    objects_gone(&objects, 2, KIND, 10);
    objects_gone(&objects, 1, KIND + 1, 10);
    objects_gone(&objects, 1, KIND, 11);
    assert_counted(&objects, 0, 3, 0);
    objects_gone(&objects, 1, KIND, 10);
    objects_gone(&objects, 1, KIND, 10);
    assert_counted(&objects, 0, 3, 3);
    assert_int_equal(objects.live_count, 0);
    objects_free(&objects);
}

static void test_key_that_is_used_again_ends_the_first(void **state)
{
    (void)state;
    struct objects objects = {0};
    make(&objects, maker(1, 1, 8), 10, 1);
    make(&objects, maker(1, 2, 16), 10, 1);
    assert_counted(&objects, 0, 1, 1);
    assert_counted(&objects, 1, 1, 0);
    assert_int_equal(objects.live_count, 1);
    objects_gone(&objects, 1, KIND, 10);
    assert_counted(&objects, 1, 1, 1);
    objects_free(&objects);
}

/* Makes and removes objects at random, and compares the counts with a plain array. */
static void test_many_objects_come_and_go(void **state)
{
    (void)state;
    struct objects objects = {0};
    static uint32_t weights[MANY]; /* by key; 0: not live */
    uint64_t made = 0, gone = 0;
    size_t live = 0;
    srand(1);
    for (unsigned i = 0; i < 20 * MANY; i++) {
        uint32_t key = (uint32_t)rand() % MANY, weight = 1 + (uint32_t)rand() % 5;
        bool comes = rand() % 3;
        gone += weights[key];
        live -= weights[key] > 0;
        if (comes)
            make(&objects, maker(1, key % 7, 8), key, weight);
        else
            objects_gone(&objects, 1, KIND, key);
        weights[key] = comes ? weight : 0;
        made += weights[key];
        live += weights[key] > 0;
        assert_int_equal(objects.live_count, live);
    }
    uint64_t counted_made = 0, counted_gone = 0;
    for (size_t i = 0; i < objects.maker_count; i++) {
        counted_made += objects.makers[i].made;
        counted_gone += objects.makers[i].gone;
    }
    assert_int_equal(counted_made, made);
    assert_int_equal(counted_gone, gone);
    objects_free(&objects);
}

/* The memory of a process's objects is freed when they are gone. */
static void test_memory_shrinks_again(void **state)
{
    (void)state;
    struct objects objects = {0};
    for (uint32_t key = 0; key < 100000; key++)
        make(&objects, maker(key % 100 ? 1 : 2, 3, 8), key, 1);
    size_t most = objects.slot_count;
    objects_forget(&objects, 1, KIND);
    assert_int_equal(objects.live_count, 1000);
    assert_true(objects.slot_count >= 2 * 1000 && objects.slot_count <= most / 8);
    for (uint32_t key = 0; key < 100000; key += 100)
        assert_non_null(objects_find(&objects, 2, KIND, key));
    objects_leave(&objects, 2, KIND);
    assert_true(objects.slot_count <= 1024);
    objects_free(&objects);
}

static void test_what_is_forgotten_is_gone(void **state)
{
    (void)state;
    struct objects objects = {0};
    for (uint64_t key = 0; key < MANY; key++) {
        make(&objects, maker(1, 1, 8), key, 1);
        make(&objects, maker(2, 2, 16), key, 1);
    }
    objects_forget(&objects, 2, KIND + 1);
    assert_int_equal(objects.live_of[KIND], 2 * MANY);
    objects_forget(&objects, 2, KIND);
    assert_counted(&objects, 0, MANY, 0);
    assert_counted(&objects, 1, MANY, MANY);
    assert_int_equal(objects.live_count, MANY);
    assert_int_equal(objects.live_of[KIND], MANY);
    for (uint64_t key = 0; key < MANY; key++)
        objects_gone(&objects, 1, KIND, key);
    assert_counted(&objects, 0, MANY, MANY);
    assert_int_equal(objects.live_of[KIND], 0);
    objects_free(&objects);
}

static void test_what_is_left_stays_counted(void **state)
{
    (void)state;
    struct objects objects = {0};
    for (uint64_t key = 0; key < MANY; key++) {
        make(&objects, maker(1, 1, 8), key, 1);
        make(&objects, maker(2, 2, 16), key, 1);
    }
    objects_gone(&objects, 1, KIND, 5);
    objects_leave(&objects, 1, KIND + 1);
    assert_int_equal(objects.live_count, 2 * MANY - 1);
    objects_leave(&objects, 1, KIND);
    assert_int_equal(objects.live_count, MANY);
    assert_counted(&objects, 0, MANY, 1);
    objects_gone(&objects, 1, KIND, 6); /* freed by a process with a reused number */
    assert_counted(&objects, 0, MANY, 1);
    for (uint64_t key = 0; key < MANY; key++)
        objects_gone(&objects, 2, KIND, key);
    assert_counted(&objects, 1, MANY, MANY);
    assert_int_equal(objects.live_count, 0);
    objects_free(&objects);
}

/* More distinct sizes than there are rows: thousands are kept exactly, and the others are rounded
 * to a near size. */
static void test_sizes_of_many_are_rounded(void **state)
{
    (void)state;
    const uint64_t sizes = 400000;
    struct objects objects = {0};
    uint64_t sum = 0, made = 0;
    for (uint64_t bytes = 1; bytes <= sizes; bytes++)
        make(&objects, maker(1, 1, bytes), bytes, 1);
    assert_true(objects.maker_count < 67000);
    for (size_t i = 0; i < objects.maker_count; i++) {
        const struct counted_maker *row = &objects.makers[i];
        assert_true(i >= 65536 || row->made == 1 || row->maker.bytes >= 64);
        made += row->made;
        sum += row->made * row->maker.bytes;
    }
    assert_int_equal(made, sizes);
    uint64_t truth = sizes * (sizes + 1) / 2;
    assert_in_range(sum, truth - truth / 1000, truth + truth / 1000);
    for (uint64_t bytes = 1; bytes <= sizes; bytes++)
        objects_gone(&objects, 1, KIND, bytes);
    for (size_t i = 0; i < objects.maker_count; i++)
        assert_int_equal(objects.makers[i].gone, objects.makers[i].made);
    objects_free(&objects);
}

static void test_stacks_get_new_numbers(void **state)
{
    (void)state;
    struct objects objects = {0};
    struct renumber stacks, names;
    struct object_maker named = maker(1, 7, 8);
    named.name = 5;
    assert_int_equal(renumber_init(&stacks, 10), 0);
    assert_int_equal(renumber_init(&names, 10), 0);
    make(&objects, maker(1, 4, 8), 1, 1);
    make(&objects, named, 2, 1);
    renumber_keep(&names, 0);
    renumber_keep(&names, 5);
    renumber_assign(&names);
    renumber_keep(&stacks, 4);
    renumber_keep(&stacks, 7);
    renumber_assign(&stacks);
    objects_renumber(&objects, &stacks, &names);
    assert_int_equal(objects.makers[0].maker.stack, 0);
    assert_int_equal(objects.makers[1].maker.stack, 1);
    named.name = named.stack = 1;
    make(&objects, named, 3, 1); /* found by its new numbers */
    assert_int_equal(objects.maker_count, 2);
    assert_counted(&objects, 1, 2, 0);
    renumber_free(&stacks);
    renumber_free(&names);
    objects_free(&objects);
}

static struct object_maker thread(uint32_t tid, uint32_t name)
{
    struct object_maker row = maker(1, 1, 0);
    row.tid = tid;
    row.maker = 7;
    row.name = name;
    return row;
}

#define NAMES_MAX 3
#define OTHER 99

/* Threads 1 to 9: thread 8 lives, and the row of thread 9 must stay. */
static void test_gone_objects_are_joined(void **state)
{
    (void)state;
    struct objects objects = {0};
    struct renumber stay;
    for (uint32_t round = 0; round < 2; round++) {
        make(&objects, maker(1, 2, 0), 50, 1);
        for (uint32_t tid = 1; tid < 10; tid++)
            make(&objects, thread(tid, tid / 2), tid, 1);
        for (uint32_t tid = 1; tid < 10; tid++) {
            if (tid != 8)
                objects_gone(&objects, 1, KIND, tid);
        }
        assert_int_equal(renumber_init(&stay, objects.maker_count), 0);
        for (uint32_t i = 0; i < objects.maker_count; i++) {
            if (objects.makers[i].maker.tid == 9)
                renumber_keep(&stay, i);
        }
        assert_int_equal(objects_join_gone(&objects, KIND, &stay, NAMES_MAX, OTHER), 0);
        renumber_free(&stay);
    }
    /* The other maker; names 0 to 2; one row for the others, threads 6 and 7; threads 8 and 9. */
    assert_int_equal(objects.maker_count, 7);
    assert_counted(&objects, 0, 2, 1);
    assert_counted(&objects, 1, 2, 2);
    assert_counted(&objects, 2, 4, 4);
    assert_counted(&objects, 3, 4, 4);
    assert_counted(&objects, 4, 4, 4);
    assert_int_equal(objects.makers[4].maker.name, OTHER);
    assert_int_equal(objects.makers[4].maker.maker, 0);
    assert_counted(&objects, 5, 2, 1);
    assert_int_equal(objects.makers[5].maker.tid, 8);
    assert_int_equal(objects.makers[5].maker.maker, 7);
    assert_int_equal(objects.makers[6].maker.tid, 9);
    /* A live object is still found. */
    objects_gone(&objects, 1, KIND, 8);
    assert_counted(&objects, 5, 2, 2);
    objects_free(&objects);
}

/* A row without objects, because all of them moved to another row. */
static void test_rows_that_made_nothing_go(void **state)
{
    (void)state;
    struct objects objects = {0};
    struct renumber stay;
    const struct object_maker named = thread(2, 5);
    make(&objects, thread(2, 0), 2, 1);
    assert_int_equal(objects_move(&objects, 2, &named), 0);
    assert_int_equal(renumber_init(&stay, 2), 0);
    assert_int_equal(objects_join_gone(&objects, KIND, &stay, NAMES_MAX, OTHER), 0);
    assert_int_equal(objects.maker_count, 1);
    assert_ptr_equal(objects_find(&objects, 1, KIND, 2), &objects.makers[0].maker);
    assert_int_equal(objects.makers[0].maker.name, 5);
    renumber_free(&stay);
    objects_free(&objects);
}

static void test_copy_has_the_makers(void **state)
{
    (void)state;
    struct objects objects = {0}, copy = {0};
    make(&objects, maker(1, 1, 8), 1, 1);
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(objects_copy(&objects, &copy), 0);
        assert_int_equal(copy.maker_count, i + 1);
        assert_memory_equal(copy.makers, objects.makers, (i + 1) * sizeof *copy.makers);
        make(&objects, maker(1, 2, 8), 2, 1);
    }
    objects_free(&objects);
    objects_free(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_makers_are_one_row),
        cmocka_unit_test(test_object_goes_once),
        cmocka_unit_test(test_key_that_is_used_again_ends_the_first),
        cmocka_unit_test(test_many_objects_come_and_go),
        cmocka_unit_test(test_memory_shrinks_again),
        cmocka_unit_test(test_what_is_forgotten_is_gone),
        cmocka_unit_test(test_what_is_left_stays_counted),
        cmocka_unit_test(test_sizes_of_many_are_rounded),
        cmocka_unit_test(test_stacks_get_new_numbers),
        cmocka_unit_test(test_gone_objects_are_joined),
        cmocka_unit_test(test_rows_that_made_nothing_go),
        cmocka_unit_test(test_copy_has_the_makers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
