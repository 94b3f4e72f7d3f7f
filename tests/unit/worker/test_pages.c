/* Which of the counted pages are still resident, in this process. */
#include "unit.h"
#include "proc/pages.h"
#include "worker/pages.h"

#include <stdio.h>

struct world {
    struct results results;
    struct page_checks checks;
    struct program *program;
};

static int set_up(void **state)
{
    struct world *world = *state = calloc(1, sizeof *world);
    struct program *program = world->program = calloc(1, sizeof *program);
    atomic_init(&program->references, 1);
    program->process_id = program->tid = getpid();
    program->proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    program->mem_fd = program->maps_fd = program->first_maps_fd = -1;
    return results_init(&world->results);
}

static int tear_down(void **state)
{
    struct world *world = *state;
    page_checks_free(&world->checks);
    results_free(&world->results);
    program_release(world->program);
    free(world);
    return 0;
}

static void count_page(struct world *world, uint64_t key, uint64_t bytes)
{
    const struct object_maker maker = {.kind = OBJECT_PAGE, .bytes = bytes};
    assert_int_equal(objects_made(&world->results.objects, &maker, key, 1), 0);
}

/* There is no channel, so that it must not ask for fewer pages. */
static void check(struct world *world)
{
    const struct object_news news = {.program = world->program, .check.is_due = true};
    assert_int_equal(pages_check(&world->checks, &world->results, NULL, &news), 0);
}

static unsigned char *map(size_t bytes)
{
    unsigned char *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    return memory;
}

/* After a process has ended, its pages count as in the check that found most of them. */
static void test_most_pages_are_kept(void **state)
{
    struct world *world = *state;
    const struct objects *objects = &world->results.objects;
    size_t bytes = page_bytes();
    unsigned char *memory = map(3 * bytes);
    memset(memory, 1, 3 * bytes);
    for (size_t i = 0; i < 3; i++)
        count_page(world, (uintptr_t)memory + i * bytes, bytes);
    check(world);
    assert_int_equal(objects->live_count, 3);
    assert_int_equal(madvise(memory, 2 * bytes, MADV_DONTNEED), 0);
    check(world);
    assert_int_equal(objects->live_count, 1);
    assert_int_equal(pages_leave(&world->checks, &world->results, 0), 0);
    assert_int_equal(objects->makers[0].made - objects->makers[0].gone, 3);
    munmap(memory, 3 * bytes);
}

/* However many objects of other kinds there are. */
static void test_other_objects_are_no_pages(void **state)
{
    struct world *world = *state;
    struct object_maker maker = {.kind = OBJECT_ALLOCATION, .bytes = 8};
    for (uint64_t key = 0; key < 300000; key++)
        assert_int_equal(objects_made(&world->results.objects, &maker, key, 1), 0);
    unsigned char *memory = map(page_bytes());
    memset(memory, 1, page_bytes());
    count_page(world, (uintptr_t)memory, page_bytes());
    check(world);
    assert_int_equal(world->results.objects.live_of[OBJECT_PAGE], 1);
    munmap(memory, page_bytes());
}

/* A huge page counts as the resident pages in its range, except those of other objects. */
static void test_parts_of_huge_pages(void **state)
{
    struct world *world = *state;
    struct pages pages;
    size_t bytes = page_bytes();
    assert_int_equal(pages_open(world->program, &pages), 0);
    size_t huge_bytes = pages.huge_bytes;
    pages_close(&pages);
    if (!huge_bytes)
        skip();
    unsigned char *memory = map(3 * huge_bytes);
    uint64_t start = ((uintptr_t)memory + huge_bytes - 1) / huge_bytes * huge_bytes;
    unsigned char *first = memory + (start - (uintptr_t)memory);
    memset(first, 1, 5 * bytes);
    count_page(world, start | PAGE_HUGE, huge_bytes);
    count_page(world, start + bytes, bytes);
    count_page(world, (start + huge_bytes) | PAGE_HUGE, huge_bytes); /* no page is there */
    check(world);
    const struct object_maker *maker =
        objects_find(&world->results.objects, 0, OBJECT_PAGE, start | PAGE_HUGE);
    assert_non_null(maker);
    assert_int_equal(maker->bytes, 4 * bytes);
    assert_int_equal(world->results.objects.live_count, 2);
    munmap(memory, 3 * huge_bytes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_most_pages_are_kept),
        TEST(test_other_objects_are_no_pages),
        TEST(test_parts_of_huge_pages),
    };
    return cmocka_run_group_tests_name("pages", tests, NULL, NULL);
}
