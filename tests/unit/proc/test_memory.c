#include "unit.h"
#include "proc/memory.h"

#include <errno.h>
#include <limits.h>

#define PAGE 4096u

/* Three pages, of which the middle one can't be read. */
static unsigned char *pages_with_a_hole(void)
{
    unsigned char *pages =
        mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    for (size_t i = 0; i < 3 * PAGE; i++)
        pages[i] = (unsigned char)(i % 251);
    assert_int_equal(munmap(pages + PAGE, PAGE), 0);
    return pages;
}

static void drop(unsigned char *pages)
{
    munmap(pages, PAGE);
    munmap(pages + 2 * PAGE, PAGE);
}

static uint64_t address_of(const unsigned char *at)
{
    return (uint64_t)(uintptr_t)at;
}

static void test_a_hole_in_the_middle(void **state)
{
    (void)state;
    unsigned char *pages = pages_with_a_hole(), buffers[9][16];
    const unsigned char *last = pages + 2 * PAGE;
    struct memory_range ranges[] = {
        {address_of(pages), buffers[0], 16, 99},
        {address_of(pages + PAGE - 4), buffers[1], 16, 99}, /* ends in the hole */
        {address_of(pages + PAGE), buffers[2], 16, 99},
        {address_of(last), buffers[3], 16, 99},
        {address_of(last - 4), buffers[4], 16, 99}, /* begins in it */
        {8, buffers[5], 16, 99},
        {UINT64_MAX - 7, buffers[7], 16, 99}, /* ends beyond all addresses */
        {UINT64_MAX / 2, buffers[8], 16, 99},
        {address_of(last + 5), buffers[6], 3, 99},
    };
    static const size_t got[] = {16, 4, 0, 16, 0, 0, 0, 0, 3};
    assert_int_equal(memory_read_many(getpid(), ranges, 9), 0);
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(ranges[i].got, got[i]);
        if (got[i])
            assert_memory_equal(ranges[i].buffer, (void *)(uintptr_t)ranges[i].address, got[i]);
    }
    drop(pages);
}

/* More than one call takes, with the faulty ones at its borders. */
static void test_many(void **state)
{
    (void)state;
    enum { COUNT = 3 * IOV_MAX + 7 };
    unsigned char *pages = pages_with_a_hole();
    uint32_t *words = calloc(COUNT, sizeof *words);
    struct memory_range *ranges = calloc(COUNT, sizeof *ranges);
    assert_non_null(words);
    assert_non_null(ranges);
    for (size_t i = 0; i < COUNT; i++) {
        bool is_faulty = i % IOV_MAX == 0 || i % IOV_MAX == IOV_MAX - 1 || i == COUNT - 1;
        ranges[i] = (struct memory_range){address_of(pages) + (is_faulty ? PAGE : i % 1000 * 4),
                                          &words[i], sizeof *words, 99};
    }
    assert_int_equal(memory_read_many(getpid(), ranges, COUNT), 0);
    for (size_t i = 0; i < COUNT; i++) {
        bool is_faulty = ranges[i].address == address_of(pages) + PAGE;
        assert_int_equal(ranges[i].got, is_faulty ? 0 : sizeof *words);
        if (!is_faulty)
            assert_memory_equal(&words[i], (void *)(uintptr_t)ranges[i].address, sizeof *words);
    }
    free(ranges);
    free(words);
    drop(pages);
}

static void test_no_such_thread(void **state)
{
    (void)state;
    uint32_t word = 0;
    struct memory_range ranges[] = {{address_of((unsigned char *)&word), &word, 4, 99},
                                    {address_of((unsigned char *)&word), &word, 4, 99}};
    assert_int_equal(memory_read_many(0x7fffffff, ranges, 2), -ESRCH);
    assert_int_equal(ranges[0].got, 0);
    assert_int_equal(ranges[1].got, 0);
    assert_int_equal(memory_read_many(getpid(), ranges, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_hole_in_the_middle),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_no_such_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
