/* Reads the target's memory. */
#ifndef FGPROF_PROC_MEMORY_H
#define FGPROF_PROC_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Copies up to `bytes` bytes at `address` from the process that thread `tid` belongs to. Returns
 * how many were read: fewer if it reaches unmapped or protected pages, 0 if none could be read. */
size_t memory_read(pid_t tid, uint64_t address, void *buffer, size_t bytes);

#endif
