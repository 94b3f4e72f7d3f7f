/* Naming locks by this program's own data. */
#include "unit.h"
#include "mapping/spaces.h"
#include "profile/name_waits.h"
#include "reader/reader.h"

#include <stdio.h>

#define HEAP_ADDRESS 0x1230u /* no file is mapped so low */

/* A vtable as a C++ compiler creates it for class net::Connection. */
extern const uintptr_t connection[4] __asm__("_ZTVN3net10ConnectionE");
const uintptr_t connection[4] = {0, 1, 2, 3};
extern const uintptr_t g_table[4];
const uintptr_t g_table[4] = {0, 1, 2, 3};

struct world {
    struct fgprof_profile *profile;
    struct spaces spaces;
    struct modules modules;
    struct strings strings;
    struct waits waits;
    struct reader *reader;
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    struct space *space;
    *state = world;
    if (!world || strings_init(&world->strings) || profile_new(&world->profile) ||
        reader_new(READER_LIMIT_MS, &world->reader))
        return -1;
    int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY);
    int maps_fd = open("/proc/self/maps", O_RDONLY);
    int err =
        spaces_add(&world->spaces, &world->modules, getpid(), proc_fd, getpid(), maps_fd, &space);
    close(proc_fd);
    close(maps_fd);
    return err;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    profile_free(world->profile);
    reader_free(world->reader);
    spaces_free(&world->spaces);
    modules_free(&world->modules);
    strings_free(&world->strings);
    waits_free(&world->waits);
    free(world);
    return 0;
}

static void add(struct world *world, enum resource_kind kind, uint64_t address,
                const uintptr_t *vtable)
{
    const struct counted_wait wait = {
        .key = address,
        .vtable = (uintptr_t)vtable,
        .kind = kind,
        .owner_process = WAIT_NO_OWNER,
        .owner_stack = WAIT_NO_STACK,
    };
    uint32_t number;
    assert_int_equal(waits_add(&world->waits, &wait, &number), 0);
    assert_int_equal(number, world->waits.count);
}

static void test_locks(void **state)
{
    struct world *world = *state;
    static const char *const wanted[] = {
        "mutex in net::Connection 0x1230",
        "condition variable in net::Connection 0x1260",
        "futex in net::Connection 0x1290",
        "mutex 0x1230",
        "mutex 0x1230",
        "mutex 0x1230",
        "mutex g_table+0x8",
        "mutex [other]",
        "socket [other]",
    };
    enum { COUNT = sizeof wanted / sizeof *wanted };
    add(world, RESOURCE_MUTEX, HEAP_ADDRESS, &connection[2]);
    add(world, RESOURCE_CONDITION, HEAP_ADDRESS + 0x30, &connection[2]);
    add(world, RESOURCE_FUTEX, HEAP_ADDRESS + 0x60, &connection[2]);
    /* No class: no pointer, a pointer to another part of the vtable, and one to other data. */
    add(world, RESOURCE_MUTEX, HEAP_ADDRESS, NULL);
    add(world, RESOURCE_MUTEX, HEAP_ADDRESS, &connection[1]);
    add(world, RESOURCE_MUTEX, HEAP_ADDRESS, &g_table[2]);
    /* The name of a variable takes precedence. */
    add(world, RESOURCE_MUTEX, (uintptr_t)&g_table[1], &connection[2]);
    /* Locks beyond the limit. */
    add(world, RESOURCE_MUTEX, 0, NULL);
    add(world, RESOURCE_SOCKET, 0, NULL);
    const struct named_rows named = {
        .strings = &world->strings, .spaces = &world->spaces, .reader = world->reader};
    bool is_used[COUNT];
    memset(is_used, true, sizeof is_used);
    uint32_t *numbers;
    assert_int_equal(name_waits(world->profile, &world->waits, &named, is_used, &numbers), 0);
    for (size_t i = 0; i < COUNT; i++) {
        const struct profile_wait *wait = &world->profile->waits[numbers[i] - 1];
        assert_string_equal(strings_get(&world->profile->strings, wait->resource), wanted[i]);
    }
    free(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_locks, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
