/* Which modules are kept open. */
#include "unit.h"
#include "elf/elf_file.h"
#include "symbol/symbols.h"

#include <errno.h>

#define COUNT (OPEN_MODULES_MAX + 1)

struct world {
    struct module *modules[COUNT]; /* this program, again and again */
    struct open_modules opened;
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    *state = world;
    for (size_t i = 0; i < COUNT; i++) {
        struct module *module = world->modules[i] = calloc(1, sizeof *module);
        *module = (struct module){.path = strdup("/bin/app"), .is_readable = true};
        int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        if (image_open_fd(&module->image, fd) || elf_file_read(module))
            return -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    open_modules_close(&world->opened);
    for (size_t i = 0; i < COUNT; i++)
        module_free(world->modules[i]);
    free(world);
    return 0;
}

static const struct open_module *get(struct world *world, size_t number, bool is_in_use)
{
    const struct open_module *opened;
    struct module *module = world->modules[number];
    assert_int_equal(open_modules_get(&world->opened, module, is_in_use, NULL, &opened), 0);
    assert_ptr_equal(opened->module, module);
    return opened;
}

static bool is_open(const struct world *world, size_t number)
{
    for (size_t i = 0; i < OPEN_MODULES_MAX; i++) {
        if (world->opened.items[i].module == world->modules[number])
            return world->opened.items[i].symbols != NULL;
    }
    return false;
}

static void test_one_at_a_time(void **state)
{
    struct world *world = *state;
    world->opened.most = 1;
    const struct symbols *symbols = get(world, 0, false)->symbols;
    assert_non_null(symbols);
    assert_ptr_equal(get(world, 0, false)->symbols, symbols);
    get(world, 1, false);
    assert_false(is_open(world, 0));
    assert_true(is_open(world, 1));
}

static void test_the_one_not_used_for_longest_makes_room(void **state)
{
    struct world *world = *state;
    world->opened.most = OPEN_MODULES_MAX;
    for (size_t i = 0; i < OPEN_MODULES_MAX; i++)
        get(world, i, false);
    for (size_t i = 0; i < OPEN_MODULES_MAX; i++)
        assert_true(is_open(world, i));
    get(world, 0, false);
    get(world, COUNT - 1, false);
    assert_true(is_open(world, COUNT - 1));
    assert_true(is_open(world, 0));
    assert_false(is_open(world, 1));
}

static void test_what_is_in_use_is_read_as_a_twin(void **state)
{
    struct world *world = *state;
    world->opened.most = 1;
    const struct open_module *opened = get(world, 0, true);
    assert_ptr_not_equal(opened->read, world->modules[0]);
    assert_ptr_equal(opened->read, opened->twin);
    opened = get(world, 1, false);
    assert_ptr_equal(opened->read, world->modules[1]);
    assert_null(opened->twin);
}

static void test_what_cannot_be_read_says_why(void **state)
{
    struct world *world = *state;
    world->opened.most = 1;
    world->modules[0]->is_readable = false;
    world->modules[0]->error = -EMFILE;
    const struct open_module *opened = get(world, 0, true);
    assert_null(opened->symbols);
    assert_string_equal(opened->why, "too many open files");
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(test_one_at_a_time),
        IN_WORLD(test_the_one_not_used_for_longest_makes_room),
        IN_WORLD(test_what_is_in_use_is_read_as_a_twin),
        IN_WORLD(test_what_cannot_be_read_says_why),
    };
    return cmocka_run_group_tests_name("open_modules", tests, NULL, NULL);
}
