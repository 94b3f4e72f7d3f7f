/* Reads the target's memory without waiting for the target, or for another process that provides
 * its pages (userfaultfd, FUSE). Such pages can't be read. */
#ifndef FGPROF_PROC_MEMORY_H
#define FGPROF_PROC_MEMORY_H

#include "proc/stack_areas.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A program's memory ends below this address, unless it asks the kernel for higher ones (the
 * kernel's Documentation/arch/arm64/memory.rst and arch/x86/x86_64/5level-paging.rst). */
#if defined(__aarch64__)
#define MEMORY_END ((uint64_t)1 << 48)
#else
#define MEMORY_END ((uint64_t)1 << 47)
#endif

/* Copies up to `bytes` bytes at `address` from the process that thread `tid` belongs to. `areas` is
 * what is known of its mappings; reading without them (NULL) costs three times as much. Returns how
 * many bytes were read: fewer at unmapped pages and at pages that only userfaultfd(2) or a file
 * could provide; 0 if none could be read. Pages that the process itself may not read are read as
 * well: stacks end where their mapping ends, so guard pages are not reached. */
size_t memory_read(pid_t tid, const struct stack_areas *areas, uint64_t address, void *buffer,
                   size_t bytes);

/* The same for a mapping of a file whose bytes there were themselves just read: waits for pages to
 * be read from the file. */
size_t memory_read_of_file(pid_t tid, uint64_t address, void *buffer, size_t bytes);

/* Reads a word. Returns whether it could be read. */
static inline bool memory_read_word(pid_t tid, const struct stack_areas *areas, uint64_t address,
                                    uint64_t *ret_word)
{
    return memory_read(tid, areas, address, ret_word, sizeof *ret_word) == sizeof *ret_word;
}

/* A piece of the target's memory, and where to copy it. */
struct memory_range {
    uint64_t address;
    void *buffer;
    size_t bytes;
    size_t got; /* how many of them were read, from the first on */
};

/* Reads all ranges from the process that thread `tid` belongs to, as memory_read does. Returns 0,
 * or a negative errno if the reason is not a range: -ESRCH, -EACCES ... */
int memory_read_many(pid_t tid, const struct stack_areas *areas, struct memory_range *ranges,
                     size_t count);

#endif
