#include "proc/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/* We read /proc/PID/mem rather than call process_vm_readv: for a page that userfaultfd(2) would
 * have to provide, the kernel gives up (access_remote_vm takes it without FAULT_FLAG_ALLOW_RETRY,
 * and handle_userfault then refuses), whereas process_vm_readv waits for it, and only a fatal
 * signal ends that. Both would wait for a page that has to be read from a file, and if the file
 * system is a process that does not answer (FUSE), even a fatal signal may not end that. So if such
 * a file may be mapped, only pages that are already resident are read. */

#define PAGES_AT_ONCE 64u
#define PAGEMAP_IS_THERE (1ull << 63) /* Documentation/admin-guide/mm/pagemap.rst in the kernel */
#define PAGEMAP_IS_SWAPPED (1ull << 62)

/* The files of /proc that are open for a read. */
struct reading {
    pid_t tid;
    const struct stack_areas *areas;
    bool waits_for_files;
    int mem_fd;
    bool owns_mem;
    int pagemap_fd; /* -1: not needed yet, or there is none */
    bool has_tried_pagemap;
};

static int open_file(pid_t tid, const char *name)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/%s", tid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int begin(struct reading *reading)
{
    reading->pagemap_fd = -1;
    reading->owns_mem = !reading->areas || !reading->areas->mem_fd_plus_1;
    reading->mem_fd =
        reading->owns_mem ? open_file(reading->tid, "mem") : reading->areas->mem_fd_plus_1 - 1;
    return reading->mem_fd == -ENOENT ? -ESRCH : reading->mem_fd < 0 ? reading->mem_fd : 0;
}

static void end(const struct reading *reading)
{
    if (reading->owns_mem && reading->mem_fd >= 0)
        close(reading->mem_fd);
    if (reading->pagemap_fd >= 0)
        close(reading->pagemap_fd);
}

/* Addresses may have a tag in their highest byte (the kernel's
 * Documentation/arch/arm64/tagged-address-abi.rst). */
static uint64_t untag(uint64_t address)
{
#if defined(__aarch64__)
    return (uint64_t)((int64_t)(address << 8) >> 8);
#else
    return address;
#endif
}

/* How many of the bytes, up to the first that is not, are on pages in memory or in swap. All of
 * them if the kernel does not show it (CONFIG_PROC_PAGE_MONITOR). */
static size_t bytes_there(struct reading *reading, uint64_t address, size_t bytes)
{
    uint64_t pages[PAGES_AT_ONCE], page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t first = address / page_bytes, last = (address + bytes - 1) / page_bytes;
    if (!reading->has_tried_pagemap)
        reading->pagemap_fd = open_file(reading->tid, "pagemap");
    reading->has_tried_pagemap = true;
    if (reading->pagemap_fd < 0)
        return bytes;
    for (uint64_t page = first; page <= last;) {
        uint64_t left = last - page + 1, count = left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE;
        ssize_t got =
            pread(reading->pagemap_fd, pages, count * sizeof *pages, (off_t)(page * sizeof *pages));
        for (size_t i = 0; i < count; i++, page++) {
            bool is_there = (ssize_t)((i + 1) * sizeof *pages) <= got &&
                            pages[i] & (PAGEMAP_IS_THERE | PAGEMAP_IS_SWAPPED);
            if (!is_there)
                return page == first ? 0 : (size_t)(page * page_bytes - address);
        }
    }
    return bytes;
}

/* How many of the bytes can be read without waiting for a file, as far as that is known. */
static size_t bytes_at_hand(struct reading *reading, uint64_t address, size_t bytes)
{
    const struct stack_area *area =
        reading->areas ? stack_areas_find(reading->areas, address) : NULL;
    if (reading->waits_for_files)
        return bytes;
    if (!area || area->may_wait)
        return bytes_there(reading, address, bytes);
    if (bytes <= area->end - address)
        return bytes;
    size_t here = area->end - address;
    return here + bytes_at_hand(reading, area->end, bytes - here);
}

/* Returns how many bytes were read, or -ESRCH if the memory is gone. */
static ssize_t read_range(struct reading *reading, uint64_t address, void *buffer, size_t bytes)
{
    address = untag(address);
    if (!bytes || address > (uint64_t)INT64_MAX - bytes)
        return 0;
    size_t at_hand = bytes_at_hand(reading, address, bytes);
    if (!at_hand)
        return 0;
    ssize_t got = pread(reading->mem_fd, buffer, at_hand, (off_t)address);
    return got < 0 ? 0 : got ? got : -ESRCH;
}

static size_t read_one(struct reading *reading, uint64_t address, void *buffer, size_t bytes)
{
    ssize_t got = begin(reading);
    if (!got)
        got = read_range(reading, address, buffer, bytes);
    end(reading);
    return got < 0 ? 0 : (size_t)got;
}

size_t memory_read(pid_t tid, const struct stack_areas *areas, uint64_t address, void *buffer,
                   size_t bytes)
{
    struct reading reading = {.tid = tid, .areas = areas};
    return read_one(&reading, address, buffer, bytes);
}

size_t memory_read_of_file(pid_t tid, uint64_t address, void *buffer, size_t bytes)
{
    struct reading reading = {.tid = tid, .waits_for_files = true};
    return read_one(&reading, address, buffer, bytes);
}

int memory_read_many(pid_t tid, const struct stack_areas *areas, struct memory_range *ranges,
                     size_t count)
{
    struct reading reading = {.tid = tid, .areas = areas};
    for (size_t i = 0; i < count; i++)
        ranges[i].got = 0;
    if (!count)
        return 0;
    ssize_t got = begin(&reading);
    for (size_t i = 0; i < count && got >= 0; i++) {
        got = read_range(&reading, ranges[i].address, ranges[i].buffer, ranges[i].bytes);
        ranges[i].got = got < 0 ? 0 : (size_t)got;
    }
    end(&reading);
    return got < 0 ? (int)got : 0;
}
