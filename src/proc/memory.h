/* Reads the target's memory. */
#ifndef FGPROF_PROC_MEMORY_H
#define FGPROF_PROC_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Copies up to `bytes` bytes at `address` from the process that thread `tid` belongs to. Returns
 * how many were read: fewer if it reaches unmapped or protected pages, 0 if none could be read. */
size_t memory_read(pid_t tid, uint64_t address, void *buffer, size_t bytes);

/* A piece of the target's memory, and where it goes. */
struct memory_range {
    uint64_t address;
    void *buffer;
    size_t bytes;
    size_t got; /* how many of them were read, from the first on */
};

/* Reads all ranges from the process that thread `tid` belongs to, as memory_read does, with as few
 * system calls as possible: one for up to IOV_MAX ranges, and one more for each range that can't be
 * read to its end. Returns 0, or a negative errno if that is no reason of a range: -ESRCH, -EPERM
 * ...
 */
int memory_read_many(pid_t tid, struct memory_range *ranges, size_t count);

#endif
