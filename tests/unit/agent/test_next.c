/* Memory for the time in which the agent finds the functions that it calls. */
#include "unit.h"
#include "agent/next.h"

struct next next = {.malloc = malloc};

/* In front of each object is its size, of which the end of the arena must leave room. */
static void test_objects_as_large_as_the_arena(void **state)
{
    (void)state;
    assert_null(next_arena_alloc(SIZE_MAX));
    assert_null(next_arena_alloc(NEXT_ARENA_BYTES + 1));
    assert_null(next_arena_alloc(NEXT_ARENA_BYTES));
    assert_null(next_arena_alloc(NEXT_ARENA_BYTES - 15));
    size_t bytes = NEXT_ARENA_BYTES - 16;
    char *object = next_arena_alloc(bytes);
    assert_non_null(object);
    assert_true(next_arena_has(object) && next_arena_has(object + bytes - 1));
    memset(object, 'x', bytes);
    assert_null(next_arena_alloc(1));
    char *moved = next_arena_move(object, 10);
    assert_non_null(moved);
    assert_memory_equal(moved, "xxxxxxxxxx", 10);
    free(moved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects_as_large_as_the_arena),
    };
    return cmocka_run_group_tests_name("next", tests, NULL, NULL);
}
