#include "unit.h"
#include "count/waits.h"

static struct counted_wait row(uint64_t key)
{
    return (struct counted_wait){.key = key,
                                 .kind = 2,
                                 .owner_process = 1,
                                 .owner_name = 7,
                                 .owner_stack = (uint32_t)key,
                                 .owner_wait_plus_1 = 1};
}

static uint32_t add(struct waits *waits, struct counted_wait wait)
{
    uint32_t wait_plus_1 = UINT32_MAX;
    assert_int_equal(waits_add(waits, &wait, &wait_plus_1), 0);
    return wait_plus_1;
}

static void test_equal_rows_are_there_once(void **state)
{
    (void)state;
    struct waits waits = {0};
    struct counted_wait others[9];
    for (size_t i = 0; i < 9; i++)
        others[i] = row(5);
    others[1].key++;
    others[2].kind++;
    others[3].space++;
    others[4].process++;
    others[5].owner_process++;
    others[6].owner_name++;
    others[7].owner_stack++;
    others[8].owner_wait_plus_1++;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 9; i++)
            assert_int_equal(add(&waits, others[i]), i + 1);
    }
    assert_int_equal(waits.count, 9);
    assert_memory_equal(&waits.rows[6], &others[6], sizeof others[6]);
    waits_free(&waits);
}

static void test_rows_are_limited(void **state)
{
    (void)state;
    struct waits waits = {0};
    for (uint32_t i = 0; i < WAITS_MAX / 2; i++)
        assert_int_equal(add(&waits, row(i)), i + 1);
    /* From here on, rows lack the owner's place: one for each resource. */
    struct counted_wait next = row(WAITS_MAX), same = next;
    same.owner_stack++;
    assert_int_equal(add(&waits, next), WAITS_MAX / 2 + 1);
    assert_int_equal(add(&waits, same), WAITS_MAX / 2 + 1);
    assert_int_equal(waits.rows[WAITS_MAX / 2].owner_stack, WAIT_NO_STACK);
    assert_int_equal(waits.rows[WAITS_MAX / 2].owner_wait_plus_1, 0);
    assert_int_equal(waits.rows[WAITS_MAX / 2].owner_name, 7);
    while (waits.count < WAITS_MAX)
        add(&waits, row(WAITS_MAX + waits.count));
    assert_int_equal(waits.limited, 0);
    /* Beyond the limit, all others of a kind and process share a row without an owner. */
    struct counted_wait first = row(1), second = row(2), file = row(3);
    file.kind++;
    assert_int_equal(add(&waits, first), WAITS_MAX + 1);
    assert_int_equal(add(&waits, second), WAITS_MAX + 1);
    assert_int_equal(add(&waits, file), WAITS_MAX + 2);
    assert_int_equal(waits.rows[WAITS_MAX].key, 0);
    assert_int_equal(waits.rows[WAITS_MAX].owner_process, WAIT_NO_OWNER);
    assert_int_equal(waits.limited, 3);
    for (uint32_t i = 0; i < 2 * WAITS_OTHER_MAX; i++) {
        first.process++;
        add(&waits, first);
    }
    assert_int_equal(add(&waits, first), 0);
    assert_int_equal(waits.count, WAITS_MAX + WAITS_OTHER_MAX);
    waits_free(&waits);
}

static void test_rows_can_be_forgotten(void **state)
{
    (void)state;
    struct waits waits = {0};
    struct renumber rows, stacks;
    struct counted_wait held = row(1), other = row(2), through = row(3), none = row(4);
    held.owner_wait_plus_1 = 0;
    other.owner_wait_plus_1 = 0;
    assert_int_equal(add(&waits, other), 1);
    assert_int_equal(add(&waits, held), 2);
    through.owner_wait_plus_1 = 2;
    assert_int_equal(add(&waits, through), 3);
    none.owner_wait_plus_1 = 3;
    none.owner_stack = WAIT_NO_STACK;
    assert_int_equal(add(&waits, none), 4);
    assert_int_equal(renumber_init(&rows, waits.count), 0);
    assert_int_equal(renumber_init(&stacks, 5), 0);
    renumber_keep(&rows, 3);
    waits_keep_chains(&waits, &rows);
    renumber_assign(&rows);
    renumber_keep(&stacks, 1);
    renumber_keep(&stacks, 3);
    renumber_assign(&stacks);
    waits_keep(&waits, &rows, &stacks);
    assert_int_equal(waits.count, 3);
    assert_int_equal(waits.rows[0].key, 1);
    assert_int_equal(waits.rows[0].owner_stack, 0);
    assert_int_equal(waits.rows[1].owner_wait_plus_1, 1);
    assert_int_equal(waits.rows[1].owner_stack, 1);
    assert_int_equal(waits.rows[2].owner_wait_plus_1, 2);
    assert_int_equal(waits.rows[2].owner_stack, WAIT_NO_STACK);
    /* They are found by their new contents. */
    struct counted_wait again = waits.rows[1];
    assert_int_equal(add(&waits, again), 2);
    assert_int_equal(add(&waits, other), 4);
    renumber_free(&rows);
    renumber_free(&stacks);
    waits_free(&waits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_rows_are_there_once),
        cmocka_unit_test(test_rows_can_be_forgotten),
        cmocka_unit_test(test_rows_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
