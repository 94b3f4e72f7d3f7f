/* Opening the file behind a mapping of this process, even after another file was mapped there. */
#include "unit.h"
#include "mapping/modules.h"
#include "proc/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct mapped {
    char paths[2][32];
    struct maps_entry entries[2]; /* what maps shows while they are mapped, at the same place */
    void *memory;
    int proc_fd;
};

static void make_file(char path[32], struct maps_entry *entry)
{
    struct stat status;
    char page[4096];
    strcpy(path, "/tmp/fgprof-mapped-XXXXXX");
    int fd = mkstemp(path);
    memset(page, 0x90, sizeof page);
    assert_true(fd >= 0 && write(fd, path, strlen(path)) > 0);
    assert_int_equal(write(fd, page, sizeof page), sizeof page);
    assert_int_equal(fstat(fd, &status), 0);
    close(fd);
    *entry = (struct maps_entry){.dev_major = major(status.st_dev),
                                 .dev_minor = minor(status.st_dev),
                                 .inode = status.st_ino,
                                 .path = path};
}

static void map_file(struct mapped *mapped, size_t number)
{
    int fd = open(mapped->paths[number], O_RDONLY | O_CLOEXEC);
    mapped->memory = mmap(mapped->memory, 4096, PROT_READ,
                          MAP_PRIVATE | (mapped->memory ? MAP_FIXED : 0), fd, 0);
    close(fd);
    assert_true(mapped->memory != MAP_FAILED);
    for (size_t i = 0; i < 2; i++) {
        mapped->entries[i].start = (uint64_t)(uintptr_t)mapped->memory;
        mapped->entries[i].end = mapped->entries[i].start + 4096;
    }
}

static int set_up(void **state)
{
    struct mapped *mapped = calloc(1, sizeof *mapped);
    *state = mapped;
    for (size_t i = 0; i < 2; i++)
        make_file(mapped->paths[i], &mapped->entries[i]);
    mapped->proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return mapped->proc_fd < 0;
}

static int tear_down(void **state)
{
    struct mapped *mapped = *state;
    munmap(mapped->memory, 4096);
    for (size_t i = 0; i < 2; i++)
        unlink(mapped->paths[i]);
    close(mapped->proc_fd);
    free(mapped);
    return 0;
}

static void assert_is_file(int fd, const struct maps_entry *entry)
{
    struct stat status;
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_ino, entry->inode);
    close(fd);
}

static void test_the_file_is_mapped(void **state)
{
    struct mapped *mapped = *state;
    map_file(mapped, 0);
    assert_is_file(mapped_file_open(mapped->proc_fd, getpid(), &mapped->entries[0]),
                   &mapped->entries[0]);
}

static void test_another_is_mapped_by_now(void **state)
{
    struct mapped *mapped = *state;
    map_file(mapped, 1);
    assert_is_file(mapped_file_open(mapped->proc_fd, getpid(), &mapped->entries[0]),
                   &mapped->entries[0]);
    /* Nor is it mistaken for one that was deleted. */
    unlink(mapped->paths[0]);
    mapped->entries[0].deleted = true;
    assert_int_equal(mapped_file_open(mapped->proc_fd, getpid(), &mapped->entries[0]), -ENOENT);
}

/* As with overlay file systems of some kernels: maps shows another inode than stat(2). */
static void test_another_inode_by_the_same_path(void **state)
{
    struct mapped *mapped = *state;
    map_file(mapped, 0);
    struct maps_entry entry = mapped->entries[0];
    entry.inode++;
    int fd = mapped_file_open(mapped->proc_fd, getpid(), &entry);
    if (fd == -ESTALE)
        skip(); /* map_files is not permitted */
    assert_is_file(fd, &mapped->entries[0]);
}

/* As on btrfs and overlayfs: maps shows another device than stat(2), so the bytes are compared. */
static void test_another_device(void **state)
{
    struct mapped *mapped = *state;
    struct maps_entry entry = mapped->entries[0];
    int fd = open(mapped->paths[0], O_RDONLY | O_CLOEXEC);
    char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    close(fd);
    assert_true(memory != MAP_FAILED);
    entry.dev_minor++;
    entry.start = (uintptr_t)memory;
    entry.end = entry.start + 4096;
    memory[4096] ^= 1; /* outside the mapping, but within the file */
    assert_is_file(mapped_file_open(mapped->proc_fd, getpid(), &entry), &mapped->entries[0]);
    memory[4095] ^= 1;
    assert_int_equal(mapped_file_open(mapped->proc_fd, getpid(), &entry), -ESTALE);
    munmap(memory, 8192);
}

/* Shared memory has names like deleted files, and no file where they lead. */
static void test_shared_memory_is_not_opened_by_its_name(void **state)
{
    struct mapped *mapped = *state;
    struct stat status;
    char path[64];
    map_file(mapped, 0);
    struct maps_entry entry = mapped->entries[0];
    int memory_fd = memfd_create("unit", MFD_CLOEXEC);
    assert_int_equal(fstat(memory_fd, &status), 0);
    snprintf(path, sizeof path, "%s (deleted)", mapped->paths[0]);
    assert_int_equal(rename(mapped->paths[0], path), 0);
    entry.deleted = true;
    entry.end -= 1; /* no place in map_files */
    assert_is_file(mapped_file_open(mapped->proc_fd, getpid(), &entry), &entry);
    entry.dev_major = major(status.st_dev);
    entry.dev_minor = minor(status.st_dev);
    assert_int_equal(mapped_file_open(mapped->proc_fd, getpid(), &entry), -ENOENT);
    assert_int_equal(rename(path, mapped->paths[0]), 0);
    close(memory_fd);
}

/* A target that has a lease on its own file does not delay us. */
static void test_a_leased_file_is_not_waited_for(void **state)
{
    struct mapped *mapped = *state;
    signal(SIGIO, SIG_IGN); /* tells the holder, which is this process */
    int holder = open(mapped->paths[0], O_RDONLY | O_CLOEXEC);
    if (fcntl(holder, F_SETLEASE, F_WRLCK))
        skip(); /* not every file system has leases */
    mapped->memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, holder, 0);
    assert_true(mapped->memory != MAP_FAILED);
    mapped->entries[0].start = (uint64_t)(uintptr_t)mapped->memory;
    mapped->entries[0].end = mapped->entries[0].start + 4096;
    alarm(20);
    assert_int_equal(mapped_file_open(mapped->proc_fd, getpid(), &mapped->entries[0]), -EAGAIN);
    assert_int_equal(fcntl(holder, F_SETLEASE, F_UNLCK), 0);
    close(holder);
    assert_is_file(mapped_file_open(mapped->proc_fd, getpid(), &mapped->entries[0]),
                   &mapped->entries[0]);
    alarm(0);
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FILES(test_the_file_is_mapped),
        WITH_FILES(test_another_is_mapped_by_now),
        WITH_FILES(test_another_inode_by_the_same_path),
        WITH_FILES(test_another_device),
        WITH_FILES(test_shared_memory_is_not_opened_by_its_name),
        WITH_FILES(test_a_leased_file_is_not_waited_for),
    };
    return cmocka_run_group_tests_name("mapped_file", tests, NULL, NULL);
}
