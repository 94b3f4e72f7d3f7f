/* Copies a file of a file system that may never answer, without waiting for longer than is wanted.
 * What waits for such a file system may not end even when it is killed, and a process with a thread
 * that waits can't end. So another process opens and reads the file, and is left behind. */
#ifndef FGPROF_BASE_BOUNDED_COPY_H
#define FGPROF_BASE_BOUNDED_COPY_H

#include <stdint.h>

#define BOUNDED_COPY_BYTES_MAX (256ull << 20)

/* Returns a descriptor or a negative errno. Runs in the other process, where no memory should be
 * allocated, and of whose descriptors only `dir_fd` is open. */
typedef int bounded_open_fn(void *context, int dir_fd);

/* Waits for at most `*wait_ns`, and subtracts how long it waited. `dir_fd` is what the function
 * opens the file with. Returns the descriptor of the copy; -ETIMEDOUT; -EFBIG for a file that is
 * larger than the limit; or another negative errno. */
int bounded_copy(bounded_open_fn *open_file, void *context, int dir_fd, uint64_t *wait_ns);

#endif
