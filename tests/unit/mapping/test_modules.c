#include "unit.h"
#include "base/clock.h"
#include "elf/elf_file.h"
#include "mapping/modules.h"
#include "proc/maps.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* As lld lays out programs: the code on the second page in memory is on the first page of the file.
 */
static const struct segment lld[] = {
    {.offset = 0, .file_bytes = 0x5e4, .address = 0x200000, .memory_bytes = 0x5e4},
    {.offset = 0x5f0,
     .file_bytes = 0x300,
     .address = 0x2015f0,
     .memory_bytes = 0x300,
     .executable = true},
    {.offset = 0x8f0, .file_bytes = 0x210, .address = 0x2028f0, .memory_bytes = 0x710},
    {.offset = 0xb00, .file_bytes = 0x30, .address = 0x203b00, .memory_bytes = 0x1030},
};

/* As GNU ld does by default: code has pages of its own in the file, too. */
static const struct segment gnu[] = {
    {.offset = 0, .file_bytes = 0x640, .address = 0, .memory_bytes = 0x640},
    {.offset = 0x1000,
     .file_bytes = 0x1a5,
     .address = 0x1000,
     .memory_bytes = 0x1a5,
     .executable = true},
    {.offset = 0x2000, .file_bytes = 0x104, .address = 0x2000, .memory_bytes = 0x104},
    {.offset = 0x2dd0, .file_bytes = 0x248, .address = 0x3dd0, .memory_bytes = 0x250},
};

static struct module module_of(const struct segment *segments, size_t count)
{
    struct module module = {.segments = malloc(count * sizeof *segments), .segment_count = count};
    size_t length = 0x4000;
    unsigned char *bytes = malloc(length);
    assert_non_null(module.segments);
    assert_non_null(bytes);
    memcpy(module.segments, segments, count * sizeof *segments);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (unsigned char)(i * 13 + i / 256);
    image_open_memory(&module.image, bytes, length);
    return module;
}

static void release(struct module *module)
{
    image_close(&module->image);
    free(module->segments);
}

#define MODULE_OF(segments) module_of(segments, sizeof(segments) / sizeof *(segments))

static void assert_address(const struct module *module, uint64_t offset, uint64_t expected)
{
    uint64_t address = 1;
    assert_true(module_address_of_offset(module, offset, &address));
    assert_int_equal(address, expected);
}

static void assert_no_address(const struct module *module, uint64_t offset)
{
    uint64_t address = 42;
    assert_false(module_address_of_offset(module, offset, &address));
    assert_int_equal(address, 42);
}

static void test_offsets_of_gnu_ld(void **state)
{
    (void)state;
    struct module module = MODULE_OF(gnu);
    assert_address(&module, 0, 0);
    assert_address(&module, 0x1000, 0x1000);
    assert_address(&module, 0x11a4, 0x11a4);
    assert_address(&module, 0x2000, 0x2000);
    assert_address(&module, 0x2dd0, 0x3dd0);
    assert_no_address(&module, 0x640);
    assert_no_address(&module, 0x11a5);
    assert_no_address(&module, 0x3018);
    assert_no_address(&module, UINT64_MAX);
    release(&module);
}

/* The kernel maps whole pages: code at offset 0x5f0 is mapped from offset 0, and the address for
 * that offset is on the code's page, not on that of the first segment. */
static void test_offsets_of_lld(void **state)
{
    (void)state;
    struct module module = MODULE_OF(lld);
    assert_address(&module, 0, 0x201000);
    assert_address(&module, 0x5f0, 0x2015f0);
    assert_address(&module, 0x8ef, 0x2018ef);
    assert_no_address(&module, 0xb30);
    assert_no_address(&module, 0x1000);
    release(&module);
}

static void test_first_segment_need_not_begin_the_file(void **state)
{
    (void)state;
    static const struct segment segments[] = {
        {.offset = 0x2000,
         .file_bytes = 0x100,
         .address = 0x402000,
         .memory_bytes = 0x100,
         .executable = true},
        {.offset = 0x1000, .file_bytes = 0x100, .address = 0x401000, .memory_bytes = 0x100},
    };
    struct module module = MODULE_OF(segments);
    assert_no_address(&module, 0);
    assert_address(&module, 0x1000, 0x401000);
    assert_address(&module, 0x2000, 0x402000);
    release(&module);
}

static void test_no_segments(void **state)
{
    (void)state;
    struct module module = {.image.fd = -1};
    char byte;
    assert_no_address(&module, 0);
    assert_false(module_read(&module, 0, &byte, 1));
}

static void assert_reads(struct module *module, uint64_t address, size_t length, size_t offset)
{
    unsigned char got[0x4000];
    assert_true(length <= sizeof got);
    assert_true(module_read(module, address, got, length));
    assert_memory_equal(got, module->image.memory + offset, length);
}

static void assert_no_read(struct module *module, uint64_t address, size_t length)
{
    unsigned char got[0x4000];
    assert_false(module_read(module, address, got, length));
}

static void test_read_finds_the_segment_by_address(void **state)
{
    (void)state;
    struct module module = MODULE_OF(lld);
    assert_reads(&module, 0x200000, 0x5e4, 0);
    assert_reads(&module, 0x2015f0, 0x300, 0x5f0);
    assert_reads(&module, 0x2018ec, 4, 0x8ec);
    assert_reads(&module, 0x2028f0, 0x210, 0x8f0);
    assert_reads(&module, 0x203b00, 8, 0xb00);
    release(&module);
}

static void test_read_stays_within_the_segment(void **state)
{
    (void)state;
    struct module module = MODULE_OF(lld);
    assert_no_read(&module, 0x1fffff, 1);
    assert_no_read(&module, 0x1fffff, 2);
    assert_no_read(&module, 0x2005e4, 1);
    assert_no_read(&module, 0x2005e0, 8);
    assert_no_read(&module, 0x2015ef, 1);
    assert_no_read(&module, 0x2018ed, 4);
    assert_no_read(&module, 0x202b00, 1); /* memory that is not in the file */
    assert_no_read(&module, 0, 1);
    assert_no_read(&module, UINT64_MAX, 1);
    assert_no_read(&module, 0x200000, SIZE_MAX);
    release(&module);
}

/* Headers are data from the file: the segments that they claim may not be in the file. */
static void test_segments_beyond_the_file(void **state)
{
    (void)state;
    static const struct segment segments[] = {
        {.offset = 0x3f00, .file_bytes = 0x1000, .address = 0x10000, .memory_bytes = 0x1000},
        {.offset = UINT64_MAX - 15, .file_bytes = 0x1000, .address = 0x20000},
        {.offset = 0, .file_bytes = UINT64_MAX, .address = 0x30000},
    };
    struct module module = MODULE_OF(segments);
    assert_reads(&module, 0x10000, 0x100, 0x3f00);
    assert_no_read(&module, 0x10000, 0x101);
    assert_no_read(&module, 0x10100, 1);
    assert_no_read(&module, 0x20000, 1);
    assert_no_read(&module, 0x20000, 32);
    assert_reads(&module, 0x30000, 0x100, 0);
    assert_no_read(&module, 0x34000, 1);
    release(&module);
}

/* A process that has ended can no longer open files for us. */
static int proc_of_a_dead_child(pid_t *ret_pid)
{
    char path[32];
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    snprintf(path, sizeof path, "/proc/%d", pid);
    int proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(proc_fd >= 0);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    *ret_pid = pid;
    return proc_fd;
}

static int find_own_code(void *context, const struct maps_entry *entry)
{
    struct maps_entry *found = context;
    uint64_t here = (uint64_t)(uintptr_t)find_own_code;
    if (entry->start > here || entry->end <= here)
        return 0;
    *found = *entry;
    found->path = strdup(entry->path);
    return 1;
}

/* If a process ended before its file could be opened, the file is opened for the next process. */
static void test_a_file_that_came_too_late(void **state)
{
    (void)state;
    struct modules modules = {0};
    struct maps_entry entry;
    struct module *late, *module, *again;
    pid_t dead;
    int maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    int dead_fd = proc_of_a_dead_child(&dead);
    int own_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(maps_read(maps_fd, find_own_code, &entry), 1);
    /* Neither by its place in memory nor by a path in our file system. */
    struct maps_entry elsewhere = entry;
    elsewhere.path = "/nonexistent/program";
    assert_int_equal(modules_get(&modules, dead_fd, dead, &elsewhere, &late), 0);
    assert_true(late->is_orphan && !late->is_readable);
    assert_int_equal(modules_get(&modules, own_fd, getpid(), &entry, &module), 0);
    assert_true(module->is_readable && !module->is_orphan);
    assert_int_equal(modules_get(&modules, own_fd, getpid(), &elsewhere, &again), 0);
    assert_ptr_not_equal(again, late);
    assert_int_equal(modules_get(&modules, own_fd, getpid(), &entry, &again), 0);
    assert_ptr_equal(again, module);
    modules_free(&modules);
    free((char *)entry.path);
    close(maps_fd);
    close(dead_fd);
    close(own_fd);
}

static int read_error;

static int read_nothing(struct queries *queries, struct module *module)
{
    (void)queries;
    assert_true(module->is_readable && module->serial && module->image.fd >= 0);
    return read_error;
}

/* A temporary error is retried for the next process, a permanent one is not. */
static void test_a_file_that_is_read_elsewhere(void **state)
{
    (void)state;
    struct queries queries = {.read = read_nothing};
    struct modules modules = {.queries = &queries};
    struct maps_entry entry;
    struct module *module, *again;
    int maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    int own_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(maps_read(maps_fd, find_own_code, &entry), 1);
    read_error = -EAGAIN;
    assert_int_equal(modules_get(&modules, own_fd, getpid(), &entry, &module), 0);
    assert_true(!module->is_readable && module->error == -EAGAIN && module->image.fd < 0);
    read_error = -EIO;
    assert_int_equal(modules_get(&modules, own_fd, getpid(), &entry, &again), 0);
    assert_ptr_not_equal(again, module);
    assert_true(!again->is_readable);
    read_error = 0;
    assert_int_equal(modules_get(&modules, own_fd, getpid(), &entry, &module), 0);
    assert_ptr_equal(module, again);
    modules_free(&modules);
    free((char *)entry.path);
    close(maps_fd);
    close(own_fd);
}

static void count_gone(void *context, const struct module *module)
{
    assert_int_equal(module->number, 0);
    ++*(unsigned *)context;
}

static void test_numbers_of_closed_modules_are_given_again(void **state)
{
    (void)state;
    struct modules modules = {0};
    struct maps_entry entry;
    struct module *module;
    unsigned gone = 0;
    int maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    int own_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(maps_read(maps_fd, find_own_code, &entry), 1);
    assert_int_equal(modules_get(&modules, own_fd, getpid(), &entry, &module), 0);
    int fd = module->image.fd;
    uint32_t serial = module->serial;
    module->users++;
    modules_close_unused(&modules, count_gone, &gone);
    assert_ptr_equal(modules.items[0], module);
    module->users--;
    modules_close_unused(&modules, count_gone, &gone);
    assert_int_equal(gone, 1);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(modules_get(&modules, own_fd, getpid(), &entry, &module), 0);
    assert_int_equal(module->number, 0);
    assert_int_not_equal(module->serial, serial);
    assert_int_equal(modules.count, 1);
    modules_free(&modules);
    free((char *)entry.path);
    close(maps_fd);
    close(own_fd);
}

/* ---- Files that are copied ---- */

/* qemu's emulation of single processes knows no process whose end sends no signal. */
static void skip_without_copies(void)
{
    pid_t pid = (pid_t)syscall(SYS_clone, 0UL, NULL, NULL, NULL, NULL);
    if (pid == 0)
        _exit(0);
    if (pid < 0)
        skip();
    assert_int_equal(waitpid(pid, NULL, __WALL), pid);
}

/* This program, as if on a file system that is mounted nowhere, which may hang. */
static struct maps_entry own_code_elsewhere(void)
{
    struct maps_entry entry;
    int maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    assert_int_equal(maps_read(maps_fd, find_own_code, &entry), 1);
    close(maps_fd);
    entry.dev_major = 0;
    entry.dev_minor = 4000099;
    return entry;
}

/* The copies count as memory, and when they take much, none is added. */
static void test_copies_are_counted(void **state)
{
    (void)state;
    struct modules modules = {0};
    struct module *module, *other;
    struct stat status;
    skip_without_copies();
    struct maps_entry entry = own_code_elsewhere();
    int own_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(modules_get(&modules, own_fd, getpid(), &entry, &module), 0);
    assert_true(module->is_readable);
    assert_int_equal(fstat(module->image.fd, &status), 0);
    assert_true(module->image.copied_bytes > 0);
    assert_int_equal(module->image.copied_bytes, status.st_blocks * 512);
    assert_true(modules_bytes(&modules) > module->image.copied_bytes);
    size_t copied_bytes = module->image.copied_bytes;
    module->image.copied_bytes = (size_t)1 << 30;
    entry.dev_minor++;
    assert_int_equal(modules_get(&modules, own_fd, getpid(), &entry, &other), 0);
    assert_true(!other->is_readable && other->error == -EAGAIN && other->is_orphan);
    module->image.copied_bytes = copied_bytes;
    assert_int_equal(modules_get(&modules, own_fd, getpid(), &entry, &other), 0);
    assert_true(other->is_readable);
    modules_free(&modules);
    free((char *)entry.path);
    close(own_fd);
}

/* When the time to wait is used up, it comes back slowly, and a new process's files are read. */
static void test_the_time_to_wait_comes_back(void **state)
{
    (void)state;
    skip_without_copies();
    struct maps_entry entry = own_code_elsewhere();
    struct module *module;
    int own_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct modules modules = {.waited_ns = 5ull * NS_PER_S, .waits_checked_ns = monotonic_ns()};
    assert_int_equal(modules_get(&modules, own_fd, getpid(), &entry, &module), 0);
    assert_true(!module->is_readable && module->error == -ETIMEDOUT);
    modules.waited_ns = 5ull * NS_PER_S;
    modules.waits_checked_ns = monotonic_ns() - 50ull * NS_PER_S;
    assert_int_equal(modules_get(&modules, own_fd, getpid(), &entry, &module), 0);
    assert_true(!module->is_readable && module->error == -ETIMEDOUT);
    modules.waited_ns = 5ull * NS_PER_S;
    modules.waits_checked_ns = monotonic_ns() - 5000ull * NS_PER_S;
    assert_int_equal(modules_get(&modules, own_fd, getpid(), &entry, &module), 0);
    assert_true(module->is_readable);
    modules_free(&modules);
    free((char *)entry.path);
    close(own_fd);
}

static void *shared_code;

static int find_shared_code(void *context, const struct maps_entry *entry)
{
    struct maps_entry *found = context;
    if (entry->start != (uintptr_t)shared_code)
        return 0;
    *found = *entry;
    found->path = strdup(entry->path);
    return 1;
}

/* Shared memory never hangs, and may be large: it is read where it is. */
static void test_shared_memory_is_not_copied(void **state)
{
    (void)state;
    struct queries queries = {.read = read_nothing};
    struct modules modules = {.queries = &queries};
    struct maps_entry entry;
    struct module *module;
    struct stat status;
    int fd = memfd_create("unit", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    assert_int_equal(fstat(fd, &status), 0);
    shared_code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    assert_true(shared_code != MAP_FAILED);
    int maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    assert_int_equal(maps_read(maps_fd, find_shared_code, &entry), 1);
    int own_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    read_error = 0;
    assert_int_equal(modules_get(&modules, own_fd, getpid(), &entry, &module), 0);
    assert_int_equal(modules.waited_ns, 0);
    assert_int_equal(module->image.copied_bytes, 0);
    if (module->is_readable) { /* opening it needs a capability */
        struct stat opened;
        assert_int_equal(fstat(module->image.fd, &opened), 0);
        assert_int_equal(opened.st_ino, status.st_ino);
    } else {
        assert_int_equal(module->error, -ENOENT);
    }
    modules_free(&modules);
    munmap(shared_code, 4096);
    free((char *)entry.path);
    close(maps_fd);
    close(own_fd);
    close(fd);
}

/* A child with another root directory, or 0 without the privilege for one. */
static pid_t child_in_another_root(void)
{
    int ends[2];
    char is_there = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        is_there = chroot("/proc") == 0;
        if (write(ends[1], &is_there, 1) == 1)
            pause();
        _exit(0);
    }
    assert_int_equal(read(ends[0], &is_there, 1), 1);
    close(ends[0]);
    close(ends[1]);
    if (is_there)
        return pid;
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return 0;
}

/* Keeping root directories open leaves a reserve of descriptors, because each container has a root
 * of its own. */
static void test_roots_keep_the_reserve(void **state)
{
    (void)state;
    enum { LIMIT = 200, RESERVE = LIMIT / 4 };
    struct rlimit before, limit;
    struct maps_entry entry;
    struct module *module;
    char path[32];
    pid_t pid = child_in_another_root();
    if (!pid)
        skip();
    int maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    assert_int_equal(maps_read(maps_fd, find_own_code, &entry), 1);
    snprintf(path, sizeof path, "/proc/%d", pid);
    int proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = LIMIT;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int highest = proc_fd;
    for (unsigned i = 0; i < 2; i++) {
        struct modules modules = {0};
        assert_int_equal(modules_get(&modules, proc_fd, pid, &entry, &module), 0);
        assert_true(i ? !module->root_fd_plus_1 : module->root_fd_plus_1 > 0);
        assert_int_equal(modules.root_count, !i);
        modules_free(&modules);
        while (highest < LIMIT - RESERVE - 1)
            highest = dup(proc_fd);
    }
    while (highest > proc_fd)
        close(highest--);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(proc_fd);
    close(maps_fd);
    free((char *)entry.path);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offsets_of_gnu_ld),
        cmocka_unit_test(test_offsets_of_lld),
        cmocka_unit_test(test_first_segment_need_not_begin_the_file),
        cmocka_unit_test(test_no_segments),
        cmocka_unit_test(test_read_finds_the_segment_by_address),
        cmocka_unit_test(test_read_stays_within_the_segment),
        cmocka_unit_test(test_segments_beyond_the_file),
        cmocka_unit_test(test_a_file_that_came_too_late),
        cmocka_unit_test(test_a_file_that_is_read_elsewhere),
        cmocka_unit_test(test_numbers_of_closed_modules_are_given_again),
        cmocka_unit_test(test_copies_are_counted),
        cmocka_unit_test(test_the_time_to_wait_comes_back),
        cmocka_unit_test(test_shared_memory_is_not_copied),
        cmocka_unit_test(test_roots_keep_the_reserve),
    };
    return cmocka_run_group_tests_name("module", tests, NULL, NULL);
}
