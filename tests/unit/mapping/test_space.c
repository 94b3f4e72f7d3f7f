#include "make_elf.h"
#include "mapping/modules.h"
#include "mapping/spaces.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Spaces of this process with made-up maps. */
struct world {
    struct spaces spaces;
    struct modules modules;
    struct space *space;
    int proc_fd;
    char directory[64];
    char path[2][96]; /* two files to map */
    unsigned long inode[2];
    dev_t device;
};

static struct stat status_of(const char *path)
{
    struct stat status;
    assert_int_equal(lstat(path, &status), 0);
    return status;
}

static void put_file(struct world *world, size_t number, const char *name, const void *bytes,
                     size_t length)
{
    char *path = world->path[number];
    snprintf(path, sizeof world->path[number], "%s/%s", world->directory, name);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    close(fd);
    world->inode[number] = status_of(path).st_ino;
    world->device = status_of(path).st_dev;
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof *world);
    struct made_elf elf;
    assert_non_null(world);
    strcpy(world->directory, "/tmp/unit-space-XXXXXX");
    assert_non_null(mkdtemp(world->directory));
    world->proc_fd = open("/proc/self", O_PATH | O_DIRECTORY);
    assert_true(world->proc_fd >= 0);
    make_elf(&elf);
    make_lld_segments(&elf);
    put_file(world, 0, "lld", elf.bytes, 0x2000);
    make_elf(&elf);
    make_segment(&elf, PT_LOAD, PF_R, 0, 0, 0x1000, 0x1000);
    make_segment(&elf, PT_LOAD, PF_R | PF_X, 0x1000, 0x1000, 0x3000, 0x3000);
    memcpy(elf.bytes + 0x1800, "code", 4);
    memcpy(elf.bytes + 0x0800, "table", 5);
    put_file(world, 1, "gnu file", elf.bytes, sizeof elf.bytes);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    spaces_free(&world->spaces);
    modules_free(&world->modules);
    close(world->proc_fd);
    unlink(world->path[0]);
    unlink(world->path[1]);
    rmdir(world->directory);
    free(world);
    return 0;
}

/* Creates a space from these maps. */
static int add(struct world *world, const char *maps)
{
    int fd = file_of_text(maps);
    int err =
        spaces_add(&world->spaces, &world->modules, 7, world->proc_fd, getpid(), fd, &world->space);
    close(fd);
    return err;
}

/* Updates the space from these maps. Returns whether they have changed. */
static bool refresh(struct world *world, const char *maps)
{
    bool changed;
    int fd = file_of_text(maps);
    assert_int_equal(spaces_refresh(&world->spaces, &world->modules, world->proc_fd, getpid(), fd,
                                    &world->space, &changed),
                     0);
    close(fd);
    return changed;
}

/* A line of maps for file `number`. */
static const char *line_of(const struct world *world, size_t number, uint64_t start, uint64_t end,
                           const char *permissions, uint64_t offset)
{
    static char lines[4][256];
    static size_t next;
    char *line = lines[next++ % 4];
    snprintf(line, sizeof lines[0], "%llx-%llx %s %08llx %02x:%02x %lu    %s\n",
             (unsigned long long)start, (unsigned long long)end, permissions,
             (unsigned long long)offset, major(world->device), minor(world->device),
             world->inode[number], world->path[number]);
    return line;
}

static char *joined(const char *first, const char *second)
{
    static char text[1024];
    snprintf(text, sizeof text, "%s%s", first, second);
    return text;
}

static void assert_found(struct world *world, uint64_t address, uint64_t start, uint64_t end)
{
    const struct mapping *mapping = space_find(world->space, address);
    assert_non_null(mapping);
    assert_int_equal(mapping->start, start);
    assert_int_equal(mapping->end, end);
}

/* As if the inode were on another device: the file is not the mapped one. */
static void test_other_device(void **state)
{
    struct world *world = *state;
    const char *line = line_of(world, 1, 0x500000, 0x504000, "r-xp", 0x1000);
    assert_int_equal(add(world, line), 0);
    assert_true(world->space->mappings[0].module->is_readable);
    world->device = makedev(major(world->device) + 1, minor(world->device));
    line = line_of(world, 1, 0x500000, 0x504000, "r-xp", 0x1000);
    assert_true(refresh(world, line));
    assert_int_equal(world->space->id, 1);
    assert_false(world->space->mappings[0].module->is_readable);
    assert_int_equal(world->space->mappings[0].module->error, -ESTALE);
}

/* On btrfs and overlayfs, maps and stat(2) show different devices. */
static void test_other_device_with_the_same_code(void **state)
{
    struct world *world = *state;
    int fd = open(world->path[1], O_RDONLY);
    void *code = mmap(NULL, 0x3000, PROT_READ, MAP_PRIVATE, fd, 0x1000);
    assert_ptr_not_equal(code, MAP_FAILED);
    close(fd);
    world->device = makedev(major(world->device) + 1, minor(world->device));
    /* Not to the mapping's end, so that map_files can't open it. */
    uint64_t start = (uintptr_t)code;
    assert_int_equal(add(world, line_of(world, 1, start, start + 0x2000, "r-xp", 0x1000)), 0);
    assert_true(world->space->mappings[0].module->is_readable);
    munmap(code, 0x3000);
}

static void assert_not_found(struct world *world, uint64_t address)
{
    assert_null(space_find(world->space, address));
}

#define ANONYMOUS(start, end) #start "-" #end " rwxp 00000000 00:00 0 \n"

static void test_find(void **state)
{
    struct world *world = *state;
    assert_int_equal(add(world, ANONYMOUS(1000, 2000) ANONYMOUS(2000, 4000) ANONYMOUS(6000, 7000)
                                    ANONYMOUS(9000, a000)),
                     0);
    assert_int_equal(world->space->pid, 7);
    assert_int_equal(world->space->id, 0);
    /* In an order in which the cached last result is right, wrong, and a neighbour. */
    assert_found(world, 0x1000, 0x1000, 0x2000);
    assert_found(world, 0x1fff, 0x1000, 0x2000);
    assert_found(world, 0x2000, 0x2000, 0x4000);
    assert_not_found(world, 0xfff);
    assert_found(world, 0x9fff, 0x9000, 0xa000);
    assert_not_found(world, 0xa000);
    assert_not_found(world, 0x4000);
    assert_not_found(world, 0x5fff);
    assert_found(world, 0x6000, 0x6000, 0x7000);
    assert_not_found(world, 0x7000);
    assert_found(world, 0x3fff, 0x2000, 0x4000);
    assert_not_found(world, 0);
    assert_not_found(world, UINT64_MAX);
}

static void test_only_code_is_taken(void **state)
{
    struct world *world = *state;
    assert_int_equal(add(world, "1000-2000 r--p 00000000 00:00 0 \n"
                                "2000-3000 r-xp 00000000 00:00 0 \n"
                                "3000-4000 rw-p 00000000 00:00 0 [heap]\n"),
                     0);
    assert_int_equal(world->space->mapping_count, 1);
    assert_not_found(world, 0x1800);
    assert_found(world, 0x2800, 0x2000, 0x3000);
    assert_not_found(world, 0x3800);
}

static void test_no_maps(void **state)
{
    struct world *world = *state;
    assert_int_equal(add(world, ""), -ESRCH);
    assert_int_equal(world->spaces.count, 0);
    assert_int_equal(
        spaces_add(&world->spaces, &world->modules, 7, world->proc_fd, getpid(), -1, &world->space),
        -EBADF);
    assert_int_equal(world->spaces.count, 0);
    assert_null(world->space);
}

/* The code of a program linked by lld is at offset 0x5f0 of the file and 0x15f0 after its base: it
 * is mapped from offset 0, one page after the first segment. */
static void test_bias_of_lld(void **state)
{
    struct world *world = *state;
    assert_int_equal(
        add(world, joined(line_of(world, 0, 0x555000000000, 0x555000001000, "r--p", 0),
                          line_of(world, 0, 0x555000001000, 0x555000002000, "r-xp", 0))),
        0);
    const struct mapping *mapping = space_find(world->space, 0x5550000015f0);
    assert_non_null(mapping);
    assert_non_null(mapping->module);
    assert_true(mapping->module->is_readable);
    assert_true(mapping->has_bias);
    /* The first segment's address in the file is 0x200000. */
    assert_int_equal(mapping->bias, 0x555000000000 - 0x200000);
    assert_int_equal(0x5550000015f0 - mapping->bias, 0x2015f0);
}

static void test_bias_below_the_files_own_addresses(void **state)
{
    struct world *world = *state;
    assert_int_equal(add(world, line_of(world, 0, 0x11000, 0x12000, "r-xp", 0)), 0);
    const struct mapping *mapping = space_find(world->space, 0x115f0);
    assert_non_null(mapping);
    assert_true(mapping->has_bias);
    assert_int_equal(0x115f0 - mapping->bias, 0x2015f0);
}

static void test_read_file(void **state)
{
    struct world *world = *state;
    char bytes[8] = {0};
    assert_int_equal(add(world, joined(line_of(world, 0, 0x100000, 0x101000, "r-xp", 0),
                                       line_of(world, 1, 0x201000, 0x204000, "r-xp", 0x1000))),
                     0);
    assert_true(space_read_file(world->space, 0x201800, bytes, 4));
    assert_string_equal(bytes, "code");
    /* From a part of the file that is mapped, but not as code. */
    assert_true(space_read_file(world->space, 0x200800, bytes, 5));
    assert_string_equal(bytes, "table");
    assert_non_null(space_find(world->space, 0x201800));
    assert_true(space_read_file(world->space, 0x200800, bytes, 5));
    assert_non_null(space_find(world->space, 0x100800));
    assert_true(space_read_file(world->space, 0x200800, bytes, 5));
    assert_string_equal(bytes, "table");
    assert_false(space_read_file(world->space, 0x204000, bytes, 1));
    assert_false(space_read_file(world->space, 0x203ffd, bytes, 4));
    assert_false(space_read_file(world->space, 0x300000, bytes, 1));
    assert_false(space_read_file(world->space, 0, bytes, 1));
}

static void assert_memory_of(struct world *world, uint64_t address, uint64_t start)
{
    const struct mapping *mapping = space_find_memory(world->space, address);
    assert_non_null(mapping);
    assert_int_equal(mapping->start, start);
}

/* Data before and after the code, even with code from no file in between. */
static void test_memory_of_files(void **state)
{
    struct world *world = *state;
    char maps[1024];
    snprintf(maps, sizeof maps, "%s%s%s%s", line_of(world, 0, 0x101000, 0x102000, "r-xp", 0),
             line_of(world, 1, 0x201000, 0x202000, "r-xp", 0x1000),
             "202000-203000 rwxp 00000000 00:00 0 \n", "300000-301000 rwxp 00000000 00:00 0 \n");
    assert_int_equal(add(world, maps), 0);
    assert_memory_of(world, 0x101800, 0x101000);
    assert_memory_of(world, 0x100000, 0x101000);
    assert_memory_of(world, 0x200000, 0x201000);
    assert_memory_of(world, 0x200fff, 0x201000);
    assert_memory_of(world, 0x203fff, 0x201000);
    assert_null(space_find_memory(world->space, 0x0fffff));
    assert_null(space_find_memory(world->space, 0x1fffff));
    assert_null(space_find_memory(world->space, 0x204000));
    assert_null(space_find_memory(world->space, 0x300800));
    assert_null(space_find_memory(world->space, 0));
    assert_null(space_find_memory(world->space, UINT64_MAX));
}

static void test_a_file_is_opened_once(void **state)
{
    struct world *world = *state;
    assert_int_equal(add(world, joined(line_of(world, 1, 0x201000, 0x202000, "r-xp", 0x1000),
                                       line_of(world, 1, 0x203000, 0x204000, "r-xp", 0x3000))),
                     0);
    assert_int_equal(world->space->mapping_count, 2);
    assert_int_equal(world->modules.count, 1);
    assert_ptr_equal(world->space->mappings[0].module, world->space->mappings[1].module);
    assert_int_equal(world->space->mappings[0].bias, world->space->mappings[1].bias);
}

static void test_the_program_is_told_from_libraries(void **state)
{
    struct world *world = *state;
    char program[PATH_MAX] = {0}, line[PATH_MAX + 64];
    assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
    snprintf(line, sizeof line, "1000-2000 r-xp 00000000 08:02 %lu %s\n",
             (unsigned long)status_of(program).st_ino, program);
    char *maps = NULL;
    assert_true(asprintf(&maps, "%s%s", line, line_of(world, 1, 0x9000, 0xa000, "r-xp", 0)) > 0);
    assert_int_equal(add(world, maps), 0);
    free(maps);
    assert_true(space_find(world->space, 0x1000)->is_main);
    assert_false(space_find(world->space, 0x9000)->is_main);
}

static const struct mapping *only_mapping(struct world *world, const char *maps)
{
    assert_int_equal(add(world, maps), 0);
    assert_int_equal(world->space->mapping_count, 1);
    return &world->space->mappings[0];
}

static void assert_not_readable(const struct mapping *mapping)
{
    assert_non_null(mapping->module);
    assert_false(mapping->module->is_readable);
    assert_false(mapping->has_bias);
}

static void test_a_deleted_file_keeps_its_name(void **state)
{
    struct world *world = *state;
    const struct mapping *mapping =
        only_mapping(world, "1000-2000 r-xp 00000000 08:02 7 /opt/gone (deleted)\n");
    assert_not_readable(mapping);
    assert_string_equal(mapping->path, "/opt/gone");
    assert_string_equal(mapping->module->path, "/opt/gone");
}

static void test_a_missing_file(void **state)
{
    assert_not_readable(only_mapping(*state, "1000-2000 r-xp 00000000 08:02 7 /no/such/file\n"));
}

static void test_a_replaced_file_is_not_taken_for_it(void **state)
{
    struct world *world = *state;
    world->inode[1]++;
    assert_not_readable(only_mapping(world, line_of(world, 1, 0x1000, 0x2000, "r-xp", 0x1000)));
}

static void test_a_file_that_is_not_elf(void **state)
{
    struct world *world = *state;
    put_file(world, 1, "gnu file", "#!/bin/sh\n", 10);
    assert_not_readable(only_mapping(world, line_of(world, 1, 0x1000, 0x2000, "r-xp", 0)));
}

/* Opening a FIFO would wait for a writer for ever. */
static void test_what_is_no_file_is_not_opened(void **state)
{
    struct world *world = *state;
    unlink(world->path[1]);
    assert_int_equal(mkfifo(world->path[1], 0600), 0);
    world->inode[1] = status_of(world->path[1]).st_ino;
    assert_not_readable(only_mapping(world, line_of(world, 1, 0x1000, 0x2000, "r-xp", 0)));
}

static void test_offset_in_no_segment(void **state)
{
    struct world *world = *state;
    const struct mapping *mapping =
        only_mapping(world, line_of(world, 1, 0x1000, 0x2000, "r-xp", 0x9000));
    assert_true(mapping->module->is_readable);
    assert_false(mapping->has_bias);
}

static void test_refresh_without_a_change(void **state)
{
    struct world *world = *state;
    char *maps = strdup(
        joined(ANONYMOUS(1000, 2000), line_of(world, 1, 0x201000, 0x202000, "r-xp", 0x1000)));
    assert_non_null(maps);
    assert_int_equal(add(world, maps), 0);
    struct space *before = world->space;
    assert_false(refresh(world, maps));
    assert_ptr_equal(world->space, before);
    assert_int_equal(world->space->mapping_count, 2);
    assert_int_equal(world->modules.count, 1);
    free(maps);
}

static void test_refresh_adds_what_is_new(void **state)
{
    struct world *world = *state;
    assert_int_equal(add(world, ANONYMOUS(5000, 6000)), 0);
    assert_found(world, 0x5000, 0x5000, 0x6000);
    struct space *before = world->space;
    assert_true(refresh(world, ANONYMOUS(1000, 2000) ANONYMOUS(5000, 6000) ANONYMOUS(8000, 9000)));
    assert_ptr_equal(world->space, before);
    assert_found(world, 0x1000, 0x1000, 0x2000);
    assert_found(world, 0x5000, 0x5000, 0x6000);
    assert_found(world, 0x8000, 0x8000, 0x9000);
}

static void test_what_was_unmapped_keeps_its_meaning(void **state)
{
    struct world *world = *state;
    assert_int_equal(add(world, ANONYMOUS(1000, 2000) ANONYMOUS(5000, 6000)), 0);
    assert_false(refresh(world, ANONYMOUS(5000, 6000)));
    assert_found(world, 0x1000, 0x1000, 0x2000);
    assert_int_equal(world->spaces.count, 1);
}

static void test_another_file_at_the_place_begins_a_new_space(void **state)
{
    struct world *world = *state;
    assert_int_equal(add(world, line_of(world, 0, 0x201000, 0x202000, "r-xp", 0)), 0);
    struct space *before = world->space;
    assert_true(refresh(world, line_of(world, 1, 0x201000, 0x204000, "r-xp", 0x1000)));
    assert_ptr_not_equal(world->space, before);
    assert_int_equal(world->spaces.count, 2);
    assert_int_equal(world->space->id, 1);
    assert_int_equal(world->space->pid, 7);
    assert_ptr_equal(world->spaces.items[1], world->space);
    assert_string_equal(space_find(world->space, 0x201800)->path, world->path[1]);
    assert_string_equal(space_find(before, 0x201800)->path, world->path[0]);
    assert_int_equal(before->mappings[0].end, 0x202000);
}

static void test_conflicts(void **state)
{
    struct world *world = *state;
    static const char jit[] = ANONYMOUS(201000, 202000);
    /* A file's code instead of a JIT's, then in part of the range, then at another offset, then a
     * JIT's again. */
    assert_int_equal(add(world, jit), 0);
    assert_true(refresh(world, line_of(world, 1, 0x201000, 0x202000, "r-xp", 0x1000)));
    assert_int_equal(world->spaces.count, 2);
    assert_true(refresh(world, line_of(world, 0, 0x201000, 0x202000, "r-xp", 0)));
    assert_int_equal(world->spaces.count, 3);
    assert_true(refresh(world, line_of(world, 1, 0x200000, 0x203000, "r-xp", 0x1000)));
    assert_int_equal(world->spaces.count, 4);
    assert_true(refresh(world, line_of(world, 1, 0x200000, 0x203000, "r-xp", 0x2000)));
    assert_int_equal(world->spaces.count, 5);
    assert_true(refresh(world, jit));
    assert_int_equal(world->spaces.count, 6);
    assert_found(world, 0x201800, 0x201000, 0x202000);
    for (size_t i = 0; i < world->spaces.count; i++)
        assert_int_equal(world->spaces.items[i]->id, i);
}

static void test_anonymous_code_grows(void **state)
{
    struct world *world = *state;
    assert_int_equal(add(world, ANONYMOUS(3000, 4000) ANONYMOUS(8000, 9000)), 0);
    assert_true(refresh(world, ANONYMOUS(3000, 5000) ANONYMOUS(8000, 9000)));
    assert_found(world, 0x4fff, 0x3000, 0x5000);
    assert_true(refresh(world, ANONYMOUS(2000, 5000) ANONYMOUS(8000, 9000)));
    assert_found(world, 0x2000, 0x2000, 0x5000);
    assert_int_equal(world->space->mapping_count, 2);
    assert_int_equal(world->spaces.count, 1);
    /* Split by a page that became writable, which changes nothing. */
    assert_false(refresh(world, ANONYMOUS(2000, 3000) ANONYMOUS(4000, 5000)));
    assert_found(world, 0x3800, 0x2000, 0x5000);
}

/* The kernel merges adjacent mappings that are alike. */
static void test_anonymous_code_grows_together(void **state)
{
    struct world *world = *state;
    assert_int_equal(add(world, ANONYMOUS(2000, 3000) ANONYMOUS(5000, 6000)), 0);
    assert_true(refresh(world, ANONYMOUS(2000, 6000)));
    assert_int_equal(world->spaces.count, 1);
    assert_non_null(space_find(world->space, 0x2000));
    assert_non_null(space_find(world->space, 0x3000));
    assert_non_null(space_find(world->space, 0x4fff));
    assert_non_null(space_find(world->space, 0x5000));
    assert_not_found(world, 0x6000);
    assert_false(refresh(world, ANONYMOUS(2000, 6000)));
}

/* A merged mapping counts as sampled if any of its parts was. */
static void test_what_was_sampled_grows_together(void **state)
{
    struct world *world = *state;
    const uint64_t last = 0x5800;
    assert_int_equal(add(world, ANONYMOUS(2000, 3000) ANONYMOUS(5000, 6000)), 0);
    space_note_sampled(world->space, &last, 1);
    assert_true(refresh(world, ANONYMOUS(2000, 6000)));
    space_keep_sampled(world->space, false);
    assert_non_null(space_find(world->space, 0x2000));
}

static void test_code_of_a_file_grows_up(void **state)
{
    struct world *world = *state;
    assert_int_equal(add(world, line_of(world, 1, 0x201000, 0x202000, "r-xp", 0x1000)), 0);
    assert_true(refresh(world, line_of(world, 1, 0x201000, 0x204000, "r-xp", 0x1000)));
    assert_int_equal(world->spaces.count, 1);
    assert_found(world, 0x203fff, 0x201000, 0x204000);
}

static void test_code_of_a_file_grows_down(void **state)
{
    struct world *world = *state;
    assert_int_equal(add(world, line_of(world, 1, 0x202000, 0x203000, "r-xp", 0x2000)), 0);
    assert_true(refresh(world, line_of(world, 1, 0x201000, 0x203000, "r-xp", 0x1000)));
    assert_int_equal(world->spaces.count, 1);
    const struct mapping *mapping = space_find(world->space, 0x201800);
    assert_non_null(mapping);
    assert_int_equal(mapping->bias, 0x200000);
    assert_int_equal(mapping->start - mapping->offset, 0x200000);
    assert_false(refresh(world, line_of(world, 1, 0x201000, 0x203000, "r-xp", 0x1000)));
}

static void test_a_branch_is_alike(void **state)
{
    struct world *world = *state;
    bool is_replaced;
    assert_int_equal(add(world, joined(ANONYMOUS(100000, 101000),
                                       line_of(world, 1, 0x201000, 0x204000, "r-xp", 0x1000))),
                     0);
    struct space *before = world->space;
    assert_int_equal(space_note_jit(before, 0x100008), 0);
    assert_int_equal(jit_code_add(&before->jit->code, 0x100000, 0x10, "f", 1, 0), 0);
    assert_int_equal(jit_take_in(before->jit, &is_replaced), 0);
    assert_int_equal(spaces_branch(&world->spaces, &world->space), 0);
    assert_ptr_not_equal(world->space, before);
    assert_int_equal(world->spaces.count, 2);
    assert_int_equal(world->space->id, 1);
    assert_int_equal(world->space->pid, 7);
    assert_found(world, 0x100008, 0x100000, 0x101000);
    assert_found(world, 0x201008, 0x201000, 0x204000);
    assert_int_equal(space_find(world->space, 0x201008)->bias, space_find(before, 0x201008)->bias);
    /* Later mappings belong to the branch alone; names of generated code are shared. */
    assert_true(refresh(world, ANONYMOUS(300000, 301000)));
    assert_null(space_find(before, 0x300000));
    assert_int_equal(space_note_jit(world->space, 0x10000a), 0);
    assert_true(refresh(world, line_of(world, 1, 0x100000, 0x103000, "r-xp", 0x1000)));
    assert_int_equal(world->space->id, 2);
    assert_int_equal(space_note_jit(world->space, 0x10000b), 0);
    jit_settle(before->jit);
    assert_non_null(jit_find(before->jit, 0, 0x100008));
    assert_non_null(jit_find(before->jit, 1, 0x10000a));
    assert_non_null(jit_find(before->jit, 2, 0x10000b));
    assert_null(jit_find(before->jit, 1, 0x100008));
}

static void test_maps_of_this_process(void **state)
{
    struct world *world = *state;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    bool changed;
    assert_int_equal(spaces_add(&world->spaces, &world->modules, getpid(), world->proc_fd, getpid(),
                                fd, &world->space),
                     0);
    uint64_t address = (uintptr_t)test_maps_of_this_process;
    const struct mapping *mapping = space_find(world->space, address);
    assert_non_null(mapping);
    assert_true(mapping->is_main);
    assert_true(mapping->has_bias);
    /* The file's bytes equal those in memory. */
    unsigned char bytes[16];
    assert_true(space_read_file(world->space, address, bytes, sizeof bytes));
    assert_memory_equal(bytes, (const void *)(uintptr_t)address, sizeof bytes);
    const struct mapping *library = space_find(world->space, (uintptr_t)strlen);
    assert_non_null(library);
    assert_false(library->is_main);
    assert_int_equal(spaces_refresh(&world->spaces, &world->modules, world->proc_fd, getpid(), fd,
                                    &world->space, &changed),
                     0);
    assert_false(changed);
    close(fd);
}

static void test_vdso_of_this_process(void **state)
{
    struct world *world = *state;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    assert_int_equal(spaces_add(&world->spaces, &world->modules, getpid(), world->proc_fd, getpid(),
                                fd, &world->space),
                     0);
    close(fd);
    for (size_t i = 0; i < world->space->mapping_count; i++) {
        const struct mapping *mapping = &world->space->mappings[i];
        if (strcmp(mapping->path, "[vdso]") != 0)
            continue;
        unsigned char bytes[4];
        assert_true(mapping->has_bias);
        assert_int_not_equal(mapping->module->unwind_table.header_address, 0);
        assert_true(space_read_file(world->space, mapping->start, bytes, sizeof bytes));
        assert_memory_equal(bytes, ELFMAG, SELFMAG);
        return;
    }
    skip(); /* some kernels have no vdso */
}

/* An earlier mapping comes back: stacks that were counted then are the same. */
static void test_back_to_an_earlier_space(void **state)
{
    struct world *world = *state;
    const char *first = line_of(world, 0, 0x201000, 0x202000, "r-xp", 0);
    const char *second = line_of(world, 1, 0x201000, 0x204000, "r-xp", 0x1000);
    assert_int_equal(add(world, first), 0);
    assert_true(refresh(world, second));
    assert_int_equal(world->space->id, 1);
    assert_true(refresh(world, first));
    assert_int_equal(world->space->id, 0);
    assert_true(refresh(world, second));
    assert_int_equal(world->space->id, 1);
    assert_int_equal(world->spaces.count, 2);
    /* With anything else mapped, it is a new space. */
    assert_true(
        refresh(world, joined(first, line_of(world, 1, 0x301000, 0x304000, "r-xp", 0x1000))));
    assert_int_equal(world->space->id, 2);
    assert_int_equal(world->spaces.count, 3);
}

/* Nobody knows which code the program has written at such an address. */
static void test_anonymous_code_is_not_the_same_again(void **state)
{
    struct world *world = *state;
    const char *code = "500000-501000 rwxp 00000000 00:00 0 \n";
    char first[512], second[512];
    snprintf(first, sizeof first, "%s%s", line_of(world, 0, 0x201000, 0x202000, "r-xp", 0), code);
    snprintf(second, sizeof second, "%s%s", line_of(world, 1, 0x201000, 0x204000, "r-xp", 0x1000),
             code);
    assert_int_equal(add(world, first), 0);
    assert_true(refresh(world, second));
    assert_true(refresh(world, first));
    assert_int_equal(world->space->id, 2);
}

/* Retiring a space keeps only the mappings in which something was sampled. */
static void test_a_retired_space_keeps_what_was_sampled(void **state)
{
    struct world *world = *state;
    const uint64_t sampled[] = {0x7ff, 0x204000, 0x203008};
    assert_int_equal(add(world, joined(line_of(world, 1, 0x201000, 0x202000, "r-xp", 0x1000),
                                       line_of(world, 1, 0x203000, 0x204000, "r-xp", 0x3000))),
                     0);
    space_note_sampled(world->space, sampled, 3);
    space_retire(world->space);
    assert_null(space_find(world->space, 0x201000));
    assert_int_equal(space_find(world->space, 0x203008)->start, 0x203000);
    assert_int_equal(world->space->mapping_count, 1);
    /* A space without samples keeps none. */
    assert_int_equal(add(world, line_of(world, 1, 0x201000, 0x202000, "r-xp", 0x1000)), 0);
    space_retire(world->space);
    assert_null(space_find(world->space, 0x201000));
    assert_int_equal(world->space->mapping_count, 0);
}

/* Programs that have ended keep little memory. */
static void test_a_retired_space_that_is_of_no_use(void **state)
{
    struct world *world = *state;
    const char *maps = line_of(world, 1, 0x201000, 0x202000, "r-xp", 0x1000);
    const uint64_t sampled = 0x201000;
    struct space *spaces[4];
    struct renumber rows;
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(add(world, maps), 0);
        spaces[i] = world->space;
        space_note_sampled(spaces[i], &sampled, 1);
        if (i != 1)
            space_retire(spaces[i]);
    }
    assert_int_equal(renumber_init(&rows, 4), 0);
    renumber_keep(&rows, 2);
    spaces_forget(&world->spaces, &rows);
    /* The second program has not ended. */
    assert_null(space_find(spaces[0], sampled));
    assert_non_null(space_find(spaces[1], sampled));
    assert_non_null(space_find(spaces[2], sampled));
    assert_null(space_find(spaces[3], sampled));
    assert_null(spaces[0]->mappings);
    assert_int_equal(world->spaces.count, 4);
    assert_int_equal(spaces[3]->id, 3);
    renumber_free(&rows);
}

static void test_generated_code_goes_with_its_last_space(void **state)
{
    struct world *world = *state;
    struct renumber none, rows;
    assert_int_equal(add(world, "500000-501000 rwxp 00000000 00:00 0 \n"), 0);
    struct space *owner = world->space;
    assert_int_equal(space_note_jit(owner, 0x500000), 0);
    assert_int_equal(spaces_branch(&world->spaces, &world->space), 0);
    space_retire(owner);
    space_retire(world->space);
    assert_int_equal(renumber_init(&none, 2), 0);
    assert_int_equal(renumber_init(&rows, 2), 0);
    renumber_keep(&rows, 1);
    struct jit *jit = owner->jit;
    assert_int_equal(spaces_with_jit(&world->spaces, jit), 2);
    spaces_forget(&world->spaces, &rows);
    assert_int_equal(spaces_with_jit(&world->spaces, jit), 1);
    assert_ptr_equal(world->space->jit, jit);
    assert_true(world->space->owns_jit);
    spaces_forget(&world->spaces, &none);
    assert_null(world->space->jit);
    renumber_free(&none);
    renumber_free(&rows);
}

/* A program that keeps replacing its code does not need ever more spaces. */
static void test_numbers_of_branches_are_used_again(void **state)
{
    struct world *world = *state;
    struct renumber none;
    assert_int_equal(add(world, "500000-501000 rwxp 00000000 00:00 0 \n"), 0);
    assert_int_equal(space_note_jit(world->space, 0x500000), 0);
    assert_int_equal(renumber_init(&none, 4), 0);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(spaces_branch(&world->spaces, &world->space), 0);
        spaces_forget(&world->spaces, &none);
        assert_non_null(world->space->jit);
    }
    assert_in_range(world->spaces.count, 2, 4);
    renumber_free(&none);
}

/* A program that executes itself again may have the same mappings. */
static void test_a_retired_space_is_not_used_again(void **state)
{
    struct world *world = *state;
    const char *first = line_of(world, 0, 0x201000, 0x202000, "r-xp", 0);
    const char *second = line_of(world, 1, 0x201000, 0x204000, "r-xp", 0x1000);
    const uint64_t sampled = 0x201000;
    assert_int_equal(add(world, first), 0);
    space_note_sampled(world->space, &sampled, 1);
    space_retire(world->space);
    assert_int_equal(add(world, second), 0);
    assert_true(refresh(world, first));
    assert_int_equal(world->space->id, 2);
}

/* Each round is one nanosecond later, and checks take no time. */
static bool is_replaced(struct world *world, const uint64_t *addresses, size_t count,
                        uint64_t round_ns)
{
    return space_is_replaced(world->space, getpid(), addresses, count, round_ns, round_ns);
}

static void test_replaced(void **state)
{
    struct world *world = *state;
    int fd = open(world->path[1], O_RDONLY), other = open(world->path[0], O_RDONLY);
    void *code = mmap(NULL, 0x4000, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(code, MAP_FAILED);
    uint64_t start = (uintptr_t)code, addresses[] = {0x10, start + 0x1800, start + 0x2000};
    assert_int_equal(add(world, line_of(world, 1, start + 0x1000, start + 0x4000, "r-xp", 0x1000)),
                     0);
    assert_false(is_replaced(world, addresses, 3, 1));
    assert_ptr_equal(mmap(code, 0x2000, PROT_READ, MAP_PRIVATE | MAP_FIXED, other, 0), code);
    /* Checked once a round. */
    assert_false(is_replaced(world, addresses, 3, 1));
    assert_false(is_replaced(world, addresses, 1, 2));
    assert_true(is_replaced(world, addresses, 3, 3));
    /* Unmapped code counts as replaced, too. */
    munmap(code, 0x4000);
    assert_true(is_replaced(world, addresses, 3, 4));
    /* Code that never matches its file is at last not checked for a while. */
    for (uint64_t round = 5; round < 12; round++)
        is_replaced(world, addresses, 3, round);
    assert_false(is_replaced(world, addresses, 3, 12));
    uint64_t later_ns = 1000000000;
    assert_true(is_replaced(world, addresses, 3, later_ns));
    assert_false(is_replaced(world, addresses, 3, later_ns + 1));
    assert_ptr_equal(mmap(code, 0x4000, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0), code);
    assert_false(is_replaced(world, addresses, 3, 2 * later_ns));
    assert_ptr_equal(mmap(code, 0x2000, PROT_READ, MAP_PRIVATE | MAP_FIXED, other, 0), code);
    assert_true(is_replaced(world, addresses, 3, 2 * later_ns + 1));
    munmap(code, 0x4000);
    close(fd);
    close(other);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(test_other_device),
        IN_WORLD(test_other_device_with_the_same_code),
        IN_WORLD(test_find),
        IN_WORLD(test_only_code_is_taken),
        IN_WORLD(test_no_maps),
        IN_WORLD(test_bias_of_lld),
        IN_WORLD(test_bias_below_the_files_own_addresses),
        IN_WORLD(test_read_file),
        IN_WORLD(test_memory_of_files),
        IN_WORLD(test_a_file_is_opened_once),
        IN_WORLD(test_the_program_is_told_from_libraries),
        IN_WORLD(test_a_deleted_file_keeps_its_name),
        IN_WORLD(test_a_missing_file),
        IN_WORLD(test_a_replaced_file_is_not_taken_for_it),
        IN_WORLD(test_a_file_that_is_not_elf),
        IN_WORLD(test_what_is_no_file_is_not_opened),
        IN_WORLD(test_offset_in_no_segment),
        IN_WORLD(test_refresh_without_a_change),
        IN_WORLD(test_refresh_adds_what_is_new),
        IN_WORLD(test_what_was_unmapped_keeps_its_meaning),
        IN_WORLD(test_another_file_at_the_place_begins_a_new_space),
        IN_WORLD(test_back_to_an_earlier_space),
        IN_WORLD(test_anonymous_code_is_not_the_same_again),
        IN_WORLD(test_a_retired_space_keeps_what_was_sampled),
        IN_WORLD(test_a_retired_space_that_is_of_no_use),
        IN_WORLD(test_generated_code_goes_with_its_last_space),
        IN_WORLD(test_numbers_of_branches_are_used_again),
        IN_WORLD(test_a_retired_space_is_not_used_again),
        IN_WORLD(test_replaced),
        IN_WORLD(test_conflicts),
        IN_WORLD(test_anonymous_code_grows),
        IN_WORLD(test_anonymous_code_grows_together),
        IN_WORLD(test_what_was_sampled_grows_together),
        IN_WORLD(test_code_of_a_file_grows_up),
        IN_WORLD(test_code_of_a_file_grows_down),
        IN_WORLD(test_a_branch_is_alike),
        IN_WORLD(test_maps_of_this_process),
        IN_WORLD(test_vdso_of_this_process),
    };
    return cmocka_run_group_tests_name("space", tests, NULL, NULL);
}
