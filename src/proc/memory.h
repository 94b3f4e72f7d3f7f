/* The target's memory, read only. */
#ifndef FGPROF_PROC_MEMORY_H
#define FGPROF_PROC_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Copies up to `bytes` bytes at `address` of the process that thread `tid` belongs to. Returns how
 * many could be read: fewer where unmapped or protected pages begin, 0 where none could. */
size_t memory_read(pid_t tid, uint64_t address, void *buffer, size_t bytes);

#endif
