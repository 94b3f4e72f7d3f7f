#include "unit.h"
#include "proc/maps.h"

#include <errno.h>
#include <stdio.h>

static struct maps_entry parse(char *line)
{
    struct maps_entry entry;
    memset(&entry, 0xa5, sizeof entry);
    assert_true(maps_parse_line(line, &entry));
    return entry;
}

static void test_a_file(void **state)
{
    (void)state;
    char line[] = "7f12a1e00000-7f12a1f55000 r-xp 00026000 fe:01 2097"
                  "                       /usr/lib/libc.so.6";
    struct maps_entry entry = parse(line);
    assert_int_equal(entry.start, 0x7f12a1e00000);
    assert_int_equal(entry.end, 0x7f12a1f55000);
    assert_true(entry.executable);
    assert_int_equal(entry.offset, 0x26000);
    assert_int_equal(entry.dev_major, 0xfe);
    assert_int_equal(entry.dev_minor, 1);
    assert_int_equal(entry.inode, 2097);
    assert_string_equal(entry.path, "/usr/lib/libc.so.6");
    assert_false(entry.deleted);
}

static void test_permissions(void **state)
{
    (void)state;
    char data[] = "1000-2000 rw-p 00000000 08:02 7 /a";
    char all[] = "1000-2000 rwxs 00000000 08:02 7 /a";
    char execute_only[] = "1000-2000 --xp 00000000 08:02 7 /a";
    char none[] = "1000-2000 ---p 00000000 08:02 7 /a";
    assert_false(parse(data).executable);
    assert_true(parse(all).executable);
    assert_true(parse(execute_only).executable);
    assert_false(parse(none).executable);
}

static void test_what_is_no_file(void **state)
{
    (void)state;
    char anonymous[] = "7f12a1e00000-7f12a1e01000 rwxp 00000000 00:00 0 ";
    char vdso[] = "7ffd1f5f2000-7ffd1f5f4000 r-xp 00000000 00:00 0                          [vdso]";
    char vsyscall[] = "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0"
                      "                  [vsyscall]";
    char named[] = "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 [anon:my heap]";
    struct maps_entry entry = parse(anonymous);
    assert_string_equal(entry.path, "");
    assert_int_equal(entry.inode, 0);
    assert_true(entry.executable);
    assert_false(entry.deleted);
    entry = parse(vdso);
    assert_string_equal(entry.path, "[vdso]");
    assert_true(entry.executable);
    entry = parse(vsyscall);
    assert_true(entry.start == 0xffffffffff600000ull);
    assert_true(entry.end == 0xffffffffff601000ull);
    assert_string_equal(entry.path, "[vsyscall]");
    entry = parse(named);
    assert_string_equal(entry.path, "[anon:my heap]");
}

static void test_large_device_offset_and_inode(void **state)
{
    (void)state;
    char line[] = "55d0c0000000-55d0c0001000 r-xp 7ffffffff000 103:10a 18446744073709551615 /x";
    struct maps_entry entry = parse(line);
    assert_int_equal(entry.offset, 0x7ffffffff000);
    assert_int_equal(entry.dev_major, 0x103);
    assert_int_equal(entry.dev_minor, 0x10a);
    assert_true(entry.inode == UINT64_MAX);
}

static void test_deleted(void **state)
{
    (void)state;
    char file[] = "1000-2000 r-xp 00000000 08:02 7 /opt/app (deleted)";
    char twice[] = "1000-2000 r-xp 00000000 08:02 7 /opt/app (deleted) (deleted)";
    char not_at_end[] = "1000-2000 r-xp 00000000 08:02 7 /opt/a (deleted) b";
    char not_a_file[] = "1000-2000 r-xp 00000000 00:00 0 [anon:x (deleted)";
    struct maps_entry entry = parse(file);
    assert_string_equal(entry.path, "/opt/app");
    assert_true(entry.deleted);
    entry = parse(twice);
    assert_string_equal(entry.path, "/opt/app (deleted)");
    assert_true(entry.deleted);
    entry = parse(not_at_end);
    assert_string_equal(entry.path, "/opt/a (deleted) b");
    assert_false(entry.deleted);
    entry = parse(not_a_file);
    assert_string_equal(entry.path, "[anon:x (deleted)");
    assert_false(entry.deleted);
}

static void test_spaces_and_escapes_in_paths(void **state)
{
    (void)state;
    char spaces[] = "1000-2000 r-xp 00000000 08:02 7   /home/a b/c  d ";
    char feed[] = "1000-2000 r-xp 00000000 08:02 7 /a\\012b\\012";
    char other[] = "1000-2000 r-xp 00000000 08:02 7 /a\\01\\040\\0123\\n";
    char deleted[] = "1000-2000 r-xp 00000000 08:02 7 /a\\012 (deleted)";
    assert_string_equal(parse(spaces).path, "/home/a b/c  d ");
    assert_string_equal(parse(feed).path, "/a\nb\n");
    assert_string_equal(parse(other).path, "/a\\01\\040\n3\\n");
    struct maps_entry entry = parse(deleted);
    assert_string_equal(entry.path, "/a\n");
    assert_true(entry.deleted);
}

static void test_path_points_into_the_line(void **state)
{
    (void)state;
    char line[] = "1000-2000 r-xp 00000000 08:02 7 /a";
    struct maps_entry entry = parse(line);
    assert_ptr_equal(entry.path, strchr(line, '/'));
}

static void test_malformed_lines(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "garbage",
        "VmFlags: rd ex mr mw me",
        "Size:                  4 kB",
        "1000-2000",
        "1000-2000 r-xp",
        "1000-2000 r-xp 00000000",
        "1000-2000 r-xp 00000000 08:02",
        "1000-2000 r-xp 00000000 08:02 x /a",
        "1000-2000 r-xp 00000000 0802 7 /a",
        "1000 2000 r-xp 00000000 08:02 7 /a",
        "1000-2000 r-x 00000000 08:02 7 /a",
        "1000-2000 r-xps 00000000 08:02 7 /a",
        "2000-2000 r-xp 00000000 08:02 7 /a", /* empty */
        "2000-1000 r-xp 00000000 08:02 7 /a",
        "xyz-2000 r-xp 00000000 08:02 7 /a",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct maps_entry entry = {.start = 42};
        char *line = strdup(lines[i]);
        assert_non_null(line);
        if (maps_parse_line(line, &entry))
            fail_msg("\"%s\" was taken for a line of maps", lines[i]);
        assert_int_equal(entry.start, 42);
        free(line);
    }
}

/* The entries that were passed to the callback. */
struct seen {
    size_t count;
    size_t stop_after; /* 0: never */
    uint64_t starts[4096];
    size_t path_lengths[4096];
    char last_path[64];
};

static int see(void *context, const struct maps_entry *entry)
{
    struct seen *seen = context;
    assert_true(seen->count < 4096);
    seen->starts[seen->count] = entry->start;
    seen->path_lengths[seen->count++] = strlen(entry->path);
    snprintf(seen->last_path, sizeof seen->last_path, "%s", entry->path);
    return seen->count == seen->stop_after ? -EXDEV : 0;
}

static void test_read_shows_every_line_in_order(void **state)
{
    (void)state;
    struct seen seen = {0};
    int fd = file_of_text("");
    for (unsigned i = 0; i < 3000; i++)
        dprintf(fd, "%x-%x r-xp 00000000 08:02 7 /lib/number %u\n", i * 0x1000 + 0x1000,
                i * 0x1000 + 0x2000, i);
    /* Reads from the start, whatever the file's position is. */
    assert_int_equal(maps_read(fd, see, &seen), 0);
    assert_int_equal(seen.count, 3000);
    for (unsigned i = 0; i < 3000; i++)
        assert_int_equal(seen.starts[i], i * 0x1000 + 0x1000);
    assert_string_equal(seen.last_path, "/lib/number 2999");
    close(fd);
}

static void test_read_takes_lines_longer_than_its_buffer(void **state)
{
    (void)state;
    struct seen seen = {0};
    size_t length = 100000;
    char *path = malloc(length + 1);
    assert_non_null(path);
    memset(path, 'p', length);
    path[0] = '/';
    path[length] = '\0';
    int fd = file_of_text("1000-2000 r-xp 00000000 08:02 7 /first\n");
    lseek(fd, 0, SEEK_END);
    dprintf(fd, "2000-3000 r-xp 00000000 08:02 7 %s\n", path);
    dprintf(fd, "3000-4000 r-xp 00000000 08:02 7 /last\n");
    assert_int_equal(maps_read(fd, see, &seen), 0);
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.path_lengths[0], 6);
    assert_int_equal(seen.path_lengths[1], length);
    assert_int_equal(seen.starts[2], 0x3000);
    assert_string_equal(seen.last_path, "/last");
    free(path);
    close(fd);
}

static void test_read_ends_where_the_visit_says(void **state)
{
    (void)state;
    struct seen seen = {.stop_after = 2};
    int fd = file_of_text("1000-2000 r-xp 0 08:02 7 /a\n2000-3000 r-xp 0 08:02 7 /b\n"
                          "3000-4000 r-xp 0 08:02 7 /c\n");
    assert_int_equal(maps_read(fd, see, &seen), -EXDEV);
    assert_int_equal(seen.count, 2);
    close(fd);
}

static void test_read_leaves_out_what_is_no_line(void **state)
{
    (void)state;
    struct seen seen = {0};
    int fd = file_of_text("\nbroken\n1000-2000 r-xp 0 08:02 7 /a\nSize: 4 kB\n\n"
                          "2000-3000 r-xp 0 08:02 7 /b\n3000-4000 r-xp 0 08:02 7 /cut o");
    assert_int_equal(maps_read(fd, see, &seen), 0);
    assert_int_equal(seen.count, 2);
    assert_string_equal(seen.last_path, "/b");
    close(fd);
}

static void test_read_of_nothing_and_of_no_file(void **state)
{
    (void)state;
    struct seen seen = {0};
    int fd = file_of_text("");
    assert_int_equal(maps_read(fd, see, &seen), 0);
    close(fd);
    assert_int_equal(maps_read(-1, see, &seen), -EBADF);
    assert_int_equal(seen.count, 0);
}

static int find_own_code(void *context, const struct maps_entry *entry)
{
    uint64_t address = (uintptr_t)find_own_code;
    bool *found = context;
    if (address >= entry->start && address < entry->end)
        *found = entry->executable && entry->inode;
    return 0;
}

static void test_read_of_this_process(void **state)
{
    (void)state;
    bool found = false;
    int fd = open("/proc/self/maps", O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(maps_read(fd, find_own_code, &found), 0);
    assert_true(found);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file),
        cmocka_unit_test(test_permissions),
        cmocka_unit_test(test_what_is_no_file),
        cmocka_unit_test(test_large_device_offset_and_inode),
        cmocka_unit_test(test_deleted),
        cmocka_unit_test(test_spaces_and_escapes_in_paths),
        cmocka_unit_test(test_path_points_into_the_line),
        cmocka_unit_test(test_malformed_lines),
        cmocka_unit_test(test_read_shows_every_line_in_order),
        cmocka_unit_test(test_read_takes_lines_longer_than_its_buffer),
        cmocka_unit_test(test_read_ends_where_the_visit_says),
        cmocka_unit_test(test_read_leaves_out_what_is_no_line),
        cmocka_unit_test(test_read_of_nothing_and_of_no_file),
        cmocka_unit_test(test_read_of_this_process),
    };
    return cmocka_run_group_tests_name("maps", tests, NULL, NULL);
}
