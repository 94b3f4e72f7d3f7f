/* Copies of this process's own address space. */
#include "unit.h"
#include "mapping/modules.h"
#include "mapping/spaces.h"

#include <stdio.h>

struct world {
    struct spaces spaces;
    struct modules modules;
    uint64_t anonymous; /* an address of code that is not in a file */
    void *code;
};

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    struct space *space;
    assert_non_null(world);
    world->code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(world->code != MAP_FAILED);
    world->anonymous = (uint64_t)(uintptr_t)world->code + 8;
    int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY);
    int maps_fd = open("/proc/self/maps", O_RDONLY);
    assert_int_equal(
        spaces_add(&world->spaces, &world->modules, getpid(), proc_fd, getpid(), maps_fd, &space),
        0);
    close(proc_fd);
    close(maps_fd);
    assert_int_equal(spaces_branch(&world->spaces, &space), 0);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    spaces_free(&world->spaces);
    modules_free(&world->modules);
    munmap(world->code, 4096);
    free(world);
    return 0;
}

static void test_a_copy_outlives_the_spaces(void **state)
{
    struct world *world = *state;
    struct spaces copy;
    uint64_t here = (uint64_t)(uintptr_t)test_a_copy_outlives_the_spaces;
    const struct mapping *mapping = space_find(world->spaces.items[1], here);
    assert_non_null(mapping);
    const struct module *module = mapping->module;
    uint64_t start = mapping->start, bias = mapping->bias;
    size_t mapping_count = world->spaces.items[1]->mapping_count;
    assert_int_equal(spaces_copy(&world->spaces, &copy), 0);
    spaces_free(&world->spaces);
    assert_int_equal(copy.count, 2);
    assert_int_equal(copy.items[1]->id, 1);
    assert_int_equal(copy.items[1]->pid, getpid());
    assert_int_equal(copy.items[1]->mapping_count, mapping_count);
    mapping = space_find(copy.items[1], here);
    assert_non_null(mapping);
    assert_int_equal(mapping->start, start);
    assert_int_equal(mapping->bias, bias);
    assert_true(mapping->is_main);
    assert_ptr_equal(mapping->module, module); /* shared, not copied */
    assert_string_equal(mapping->path, module->path);
    mapping = space_find(copy.items[0], world->anonymous);
    assert_non_null(mapping);
    assert_null(mapping->module);
    assert_string_equal(mapping->path, "");
    spaces_free(&copy);
    assert_int_equal(copy.count, 0);
}

static void test_copies_share_what_is_known_of_generated_code(void **state)
{
    struct world *world = *state;
    struct spaces copy;
    bool is_replaced;
    assert_int_equal(space_note_jit(world->spaces.items[0], world->anonymous), 0);
    struct jit *jit = world->spaces.items[0]->jit;
    assert_int_equal(jit_code_add(&jit->code, (uint64_t)(uintptr_t)world->code, 4096, "made", 4, 0),
                     0);
    assert_int_equal(jit_take_in(jit, &is_replaced), 0);
    /* A branch created after the copy shares it. */
    struct space *space = world->spaces.items[0];
    assert_int_equal(spaces_branch(&world->spaces, &space), 0);
    assert_ptr_equal(space->jit, jit);
    assert_int_equal(space_note_jit(space, world->anonymous), 0);
    assert_int_equal(spaces_copy(&world->spaces, &copy), 0);
    assert_ptr_not_equal(copy.items[0]->jit, jit);
    assert_ptr_equal(copy.items[2]->jit, copy.items[0]->jit);
    spaces_free(&world->spaces);
    for (size_t i = 0; i < 3; i += 2) {
        const struct jit *made = copy.items[i]->jit;
        const struct jit_symbol *symbol = jit_find(made, copy.items[i]->id, world->anonymous);
        assert_non_null(symbol);
        assert_string_equal(strings_get(&made->code.strings, symbol->name), "made");
    }
    spaces_free(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_copy_outlives_the_spaces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_copies_share_what_is_known_of_generated_code, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests_name("space_copy", tests, NULL, NULL);
}
