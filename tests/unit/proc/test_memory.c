#include "unit.h"
#include "proc/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#define PAGE 4096u

/* Three pages, the middle one of which can't be read. */
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
    assert_int_equal(memory_read_many(getpid(), NULL, ranges, 9), 0);
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(ranges[i].got, got[i]);
        if (got[i])
            assert_memory_equal(ranges[i].buffer, (void *)(uintptr_t)ranges[i].address, got[i]);
    }
    drop(pages);
}

/* More than fit in one call, with the failing ones at the boundaries between calls. */
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
    assert_int_equal(memory_read_many(getpid(), NULL, ranges, COUNT), 0);
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
    assert_int_equal(memory_read_many(0x7fffffff, NULL, ranges, 2), -ESRCH);
    assert_int_equal(ranges[0].got, 0);
    assert_int_equal(ranges[1].got, 0);
    assert_int_equal(memory_read_many(getpid(), NULL, ranges, 0), 0);
}

/* A file of two pages, the second of which has not been accessed yet. */
static unsigned char *map_file(void)
{
    int fd = memfd_create("pages", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 2 * PAGE), 0);
    assert_int_equal(pwrite(fd, "file", 4, 0), 4);
    unsigned char *pages = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    close(fd);
    return pages;
}

static struct stack_areas read_areas(void)
{
    struct stack_areas areas = {0};
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(stack_areas_read(&areas, fd), 0);
    close(fd);
    return areas;
}

/* With and without known mappings. */
static void test_pages_of_a_file_are_read_if_they_are_there(void **state)
{
    (void)state;
    unsigned char *pages = map_file(), buffer[2 * PAGE];
    struct stack_areas areas = read_areas();
    uint64_t address = address_of(pages);
    assert_true(stack_areas_find(&areas, address)->may_wait);
    assert_int_equal(memory_read(getpid(), NULL, address, buffer, 8), 0);
    assert_int_equal(memory_read(getpid(), &areas, address, buffer, 8), 0);
    assert_int_equal(*(volatile unsigned char *)pages, 'f');
    assert_int_equal(memory_read(getpid(), NULL, address + 1, buffer, sizeof buffer), PAGE - 1);
    assert_int_equal(memory_read(getpid(), &areas, address + 1, buffer, sizeof buffer), PAGE - 1);
    assert_memory_equal(buffer, "ile", 3);
    assert_int_equal(memory_read(getpid(), &areas, address + PAGE, buffer, 8), 0);
    assert_int_equal(memory_read_of_file(getpid(), address, buffer, sizeof buffer), sizeof buffer);
    stack_areas_free(&areas);
    munmap(pages, 2 * PAGE);
}

/* Anonymous memory is read without checking which pages are present. */
static void test_memory_of_no_file_may_be_untouched(void **state)
{
    (void)state;
    unsigned char buffer[PAGE];
    unsigned char *pages =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    struct stack_areas areas = read_areas();
    assert_false(stack_areas_find(&areas, address_of(pages))->may_wait);
    assert_int_equal(memory_read(getpid(), &areas, address_of(pages), buffer, PAGE), PAGE);
    stack_areas_free(&areas);
    munmap(pages, PAGE);
}

static void test_an_open_memory_file_is_used(void **state)
{
    (void)state;
    uint32_t word = 17, read_word = 0;
    struct stack_areas areas = read_areas();
    int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    areas.mem_fd_plus_1 = fd + 1;
    assert_int_equal(
        memory_read(0x7fffffff, &areas, address_of((unsigned char *)&word), &read_word, 4), 4);
    assert_int_equal(read_word, 17);
    assert_int_equal(close(fd), 0);
    areas.mem_fd_plus_1 = 0;
    assert_int_equal(
        memory_read(0x7fffffff, &areas, address_of((unsigned char *)&word), &read_word, 4), 0);
    stack_areas_free(&areas);
}

/* Nobody serves the userfaultfd: a read that waits for it would never return. */
static void test_pages_that_userfaultfd_would_have_to_provide(void **state)
{
    (void)state;
    unsigned char buffer[2 * PAGE];
    struct uffdio_api api = {.api = UFFD_API};
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
        skip();
    unsigned char *pages =
        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    pages[0] = 1;
    struct uffdio_register range = {.range = {address_of(pages), 2 * PAGE},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    assert_int_equal(ioctl(fd, UFFDIO_REGISTER, &range), 0);
    struct stack_areas areas = read_areas();
    assert_int_equal(memory_read(getpid(), &areas, address_of(pages), buffer, sizeof buffer), PAGE);
    assert_int_equal(memory_read(getpid(), &areas, address_of(pages) + PAGE, buffer, 8), 0);
    assert_int_equal(memory_read_of_file(getpid(), address_of(pages) + PAGE, buffer, 8), 0);
    stack_areas_free(&areas);
    munmap(pages, 2 * PAGE);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_hole_in_the_middle),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_no_such_thread),
        cmocka_unit_test(test_pages_of_a_file_are_read_if_they_are_there),
        cmocka_unit_test(test_memory_of_no_file_may_be_untouched),
        cmocka_unit_test(test_an_open_memory_file_is_used),
        cmocka_unit_test(test_pages_that_userfaultfd_would_have_to_provide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
