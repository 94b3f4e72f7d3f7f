#include "unit.h"
#include "elf/image.h"

#include <errno.h>

/* A byte that depends on its offset, and differs between pages. */
static unsigned char byte_at(size_t offset)
{
    return (unsigned char)(offset * 31 + offset / 251);
}

static unsigned char *pattern(size_t length)
{
    unsigned char *bytes = malloc(length);
    assert_non_null(bytes);
    for (size_t i = 0; i < length; i++)
        bytes[i] = byte_at(i);
    return bytes;
}

static void open_pattern(struct image *image, size_t length)
{
    unsigned char *bytes = pattern(length);
    assert_int_equal(image_open_fd(image, file_of(bytes, length)), 0);
    assert_int_equal(image->bytes, length);
    free(bytes);
}

static void assert_reads(struct image *image, uint64_t offset, size_t length)
{
    unsigned char *got = malloc(length + 1);
    assert_non_null(got);
    memset(got, 0xee, length + 1);
    got[length] = 0x77;
    assert_true(image_read(image, offset, got, length));
    for (size_t i = 0; i < length; i++)
        assert_int_equal(got[i], byte_at(offset + i));
    assert_int_equal(got[length], 0x77);
    free(got);
}

static void assert_out_of_bounds(struct image *image, uint64_t offset, size_t length)
{
    unsigned char got[16];
    assert_true(length <= sizeof got || length > image->bytes);
    assert_false(image_read(image, offset, got, length));
}

static void check_bounds(struct image *image, size_t length)
{
    assert_reads(image, 0, length);
    assert_reads(image, 0, 0);
    assert_reads(image, length, 0);
    assert_reads(image, length - 1, 1);
    assert_out_of_bounds(image, length, 1);
    assert_out_of_bounds(image, length - 1, 2);
    assert_out_of_bounds(image, length + 1, 0);
    assert_out_of_bounds(image, 0, length + 1);
    assert_out_of_bounds(image, 8, SIZE_MAX); /* offset + length wraps around to 7 */
    assert_out_of_bounds(image, UINT64_MAX, 1);
    assert_out_of_bounds(image, UINT64_MAX, 2);
    assert_out_of_bounds(image, UINT64_MAX - 3, 8);
}

static void test_file_of_less_than_a_page(void **state)
{
    (void)state;
    struct image image;
    open_pattern(&image, 100);
    check_bounds(&image, 100);
    image_close(&image);
}

static void test_file_of_whole_pages(void **state)
{
    (void)state;
    struct image image;
    open_pattern(&image, 2 * IMAGE_PAGE_BYTES);
    check_bounds(&image, 2 * IMAGE_PAGE_BYTES);
    image_close(&image);
}

static void test_reads_across_pages(void **state)
{
    (void)state;
    struct image image;
    size_t length = 5 * IMAGE_PAGE_BYTES + 123;
    open_pattern(&image, length);
    assert_reads(&image, IMAGE_PAGE_BYTES - 1, 2);
    assert_reads(&image, 3 * IMAGE_PAGE_BYTES - 4, IMAGE_PAGE_BYTES + 8);
    assert_reads(&image, 4 * IMAGE_PAGE_BYTES, IMAGE_PAGE_BYTES + 123);
    check_bounds(&image, length);
    image_close(&image);
}

static void test_empty_file(void **state)
{
    (void)state;
    struct image image;
    char byte;
    assert_int_equal(image_open_fd(&image, file_of_text("")), 0);
    assert_true(image_read(&image, 0, &byte, 0));
    assert_false(image_read(&image, 0, &byte, 1));
    image_close(&image);
}

static void test_memory(void **state)
{
    (void)state;
    struct image image;
    size_t length = IMAGE_PAGE_BYTES + 50;
    image_open_memory(&image, pattern(length), length);
    assert_int_equal(image.fd, -1);
    check_bounds(&image, length);
    image_close(&image);
}

static void test_what_was_read_is_kept(void **state)
{
    (void)state;
    struct image image;
    open_pattern(&image, 3 * IMAGE_PAGE_BYTES);
    assert_reads(&image, 10, 20);
    assert_int_equal(ftruncate(image.fd, 0), 0);
    assert_reads(&image, 0, IMAGE_PAGE_BYTES);
    assert_int_equal(pwrite(image.fd, "changed", 7, 10), 7);
    assert_reads(&image, 10, 20);
    image_close(&image);
}

static void test_file_cut_short_at_a_page(void **state)
{
    (void)state;
    struct image image;
    open_pattern(&image, 3 * IMAGE_PAGE_BYTES);
    assert_int_equal(ftruncate(image.fd, IMAGE_PAGE_BYTES), 0);
    assert_reads(&image, 0, IMAGE_PAGE_BYTES);
    assert_out_of_bounds(&image, IMAGE_PAGE_BYTES, 1);
    assert_out_of_bounds(&image, IMAGE_PAGE_BYTES - 1, 2);
    assert_out_of_bounds(&image, 3 * IMAGE_PAGE_BYTES - 1, 1);
    image_close(&image);
}

/* Otherwise zeros would pass as the file's data. */
static void test_file_cut_short_within_a_page(void **state)
{
    (void)state;
    struct image image;
    open_pattern(&image, 3 * IMAGE_PAGE_BYTES);
    assert_int_equal(ftruncate(image.fd, IMAGE_PAGE_BYTES + 100), 0);
    assert_reads(&image, IMAGE_PAGE_BYTES, 100);
    assert_out_of_bounds(&image, IMAGE_PAGE_BYTES + 100, 1);
    assert_out_of_bounds(&image, IMAGE_PAGE_BYTES + 96, 8);
    image_close(&image);
}

/* An array of ascending numbers, so that each of them can be searched for. */
static void open_numbers(struct image *image, uint32_t count, bool in_memory)
{
    uint32_t *numbers = malloc(count * sizeof *numbers);
    assert_non_null(numbers);
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = i;
    if (in_memory) {
        image_open_memory(image, (unsigned char *)numbers, count * sizeof *numbers);
        return;
    }
    assert_int_equal(image_open_fd(image, file_of(numbers, count * sizeof *numbers)), 0);
    free(numbers);
}

static void test_find(void **state)
{
    (void)state;
    for (unsigned in_memory = 0; in_memory < 2; in_memory++) {
        enum { COUNT = 70000 };
        struct image image;
        uint64_t offset;
        open_numbers(&image, COUNT, in_memory);
        static const uint32_t numbers[] = {8, 16380, 16384, 16388, 65536, COUNT - 4};
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            assert_true(image_find(&image, 0, UINT64_MAX, &numbers[i], 4, 16, &offset));
            assert_int_equal(offset, 4 * numbers[i]);
        }
        uint32_t wanted = 17;
        /* Not at a multiple of 16 from offset 0, but at one from offset 4. */
        assert_false(image_find(&image, 0, UINT64_MAX, &wanted, 4, 16, &offset));
        assert_true(image_find(&image, 4, UINT64_MAX, &wanted, 4, 16, &offset));
        assert_int_equal(offset, 4 * 17);
        /* Behind the start; beyond the end; nowhere. */
        assert_false(image_find(&image, 4 * 18, UINT64_MAX, &wanted, 4, 4, &offset));
        assert_false(image_find(&image, 0, 4 * 17 + 3, &wanted, 4, 4, &offset));
        assert_true(image_find(&image, 0, 4 * 17 + 4, &wanted, 4, 4, &offset));
        wanted = COUNT;
        assert_false(image_find(&image, 0, UINT64_MAX, &wanted, 4, 4, &offset));
        assert_false(image_find(&image, UINT64_MAX, UINT64_MAX, &wanted, 4, 4, &offset));
        assert_null(image.pages);
        image_close(&image);
    }
}

static void test_close_closes(void **state)
{
    (void)state;
    struct image image;
    int fd = file_of_text("text");
    assert_int_equal(image_open_fd(&image, fd), 0);
    image_close(&image);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(image.fd, -1);
    image_close(&image);
}

static void test_open_of_no_file(void **state)
{
    (void)state;
    struct image image;
    assert_int_equal(image_open_fd(&image, -1), -EBADF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_of_less_than_a_page),
        cmocka_unit_test(test_file_of_whole_pages),
        cmocka_unit_test(test_reads_across_pages),
        cmocka_unit_test(test_empty_file),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_what_was_read_is_kept),
        cmocka_unit_test(test_file_cut_short_at_a_page),
        cmocka_unit_test(test_file_cut_short_within_a_page),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_close_closes),
        cmocka_unit_test(test_open_of_no_file),
    };
    return cmocka_run_group_tests_name("image", tests, NULL, NULL);
}
