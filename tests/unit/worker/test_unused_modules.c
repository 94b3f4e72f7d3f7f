/* Which files stay open for naming modules that no program has mapped any more. */
#include "unit.h"
#include "worker/unused_modules.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define MODULES 6
#define OPEN_MAX 3
#define MAPPED 1

struct world {
    struct results results;
    struct module *modules[MODULES];
    struct mapping mapping;
    struct space space;
    struct space *spaces[1];
};

/* A stack refers to each module, and a program has one of them mapped. */
static int set_up(void **state)
{
    struct world *world = *state = calloc(1, sizeof *world);
    struct modules *modules = &world->results.modules;
    modules->items = calloc(MODULES, sizeof *modules->items);
    modules->open_for_names_max = OPEN_MAX;
    for (; modules->count < MODULES; modules->count++) {
        struct module *module = calloc(1, sizeof *module);
        int fd = memfd_create("module", MFD_CLOEXEC);
        assert_int_equal(ftruncate(fd, 4096), 0);
        assert_int_equal(image_open_fd(&module->image, fd), 0);
        module->number = (uint32_t)modules->count;
        module->serial = 100 - module->number; /* the last one is the oldest */
        module->users = 1;
        module->is_readable = true;
        world->modules[modules->count] = modules->items[modules->count] = module;
    }
    modules->open_files = MODULES;
    world->mapping.module = world->modules[MAPPED];
    world->space = (struct space){.mappings = &world->mapping, .mapping_count = 1};
    world->spaces[0] = &world->space;
    world->results.spaces = (struct spaces){.items = world->spaces, .count = 1};
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    modules_free(&world->results.modules);
    free(world);
    return 0;
}

static size_t count_open(const struct world *world)
{
    size_t count = 0;
    for (size_t i = 0; i < MODULES; i++)
        count += world->modules[i]->image.fd >= 0;
    assert_int_equal(world->results.modules.open_files, count);
    return count;
}

static void test_the_oldest_are_closed(void **state)
{
    struct world *world = *state;
    int fd = world->modules[MODULES - 1]->image.fd;
    assert_int_equal(unused_modules_free(&world->results, NULL), 0);
    assert_int_equal(count_open(world), OPEN_MAX + 1);
    for (size_t i = 0; i < MODULES; i++) {
        const struct module *module = world->modules[i];
        bool is_closed = i >= MODULES - 2;
        assert_int_equal(module->is_readable, !is_closed);
        assert_int_equal(module->is_orphan, is_closed);
        assert_int_equal(module->error, is_closed ? -EMFILE : 0);
    }
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(unused_modules_free(&world->results, NULL), 0);
    assert_int_equal(count_open(world), OPEN_MAX + 1);
}

static void test_what_is_mapped_is_not_closed(void **state)
{
    struct world *world = *state;
    world->results.modules.open_for_names_max = 0;
    assert_int_equal(unused_modules_free(&world->results, NULL), 0);
    assert_int_equal(count_open(world), 1);
    assert_true(world->modules[MAPPED]->is_readable);
}

static void test_nothing_is_closed_while_it_is_named(void **state)
{
    struct world *world = *state;
    pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;
    world->results.modules.naming = &naming;
    pthread_mutex_lock(&naming);
    assert_int_equal(unused_modules_free(&world->results, NULL), 0);
    assert_int_equal(count_open(world), MODULES);
    pthread_mutex_unlock(&naming);
    assert_int_equal(unused_modules_free(&world->results, NULL), 0);
    assert_int_equal(count_open(world), OPEN_MAX + 1);
    assert_int_equal(pthread_mutex_trylock(&naming), 0);
    pthread_mutex_unlock(&naming);
}

static void test_what_nothing_refers_to_goes(void **state)
{
    struct world *world = *state;
    world->modules[0]->users = 0;
    assert_int_equal(unused_modules_free(&world->results, NULL), 0);
    assert_null(world->results.modules.items[0]);
    assert_int_equal(world->results.modules.open_files, OPEN_MAX + 1);
}

#define WITH_MODULES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_MODULES(test_the_oldest_are_closed),
        WITH_MODULES(test_what_is_mapped_is_not_closed),
        WITH_MODULES(test_nothing_is_closed_while_it_is_named),
        WITH_MODULES(test_what_nothing_refers_to_goes),
    };
    return cmocka_run_group_tests_name("unused_modules", tests, NULL, NULL);
}
