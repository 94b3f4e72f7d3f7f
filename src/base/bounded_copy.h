/* Copies a file from a file system that may never answer, and waits only for a limited time. A
 * thread that waits for such a file system may not end even when it is killed, and its process
 * can't end either. So another process opens and reads the file, and is abandoned if it does not
 * finish. */
#ifndef FGPROF_BASE_BOUNDED_COPY_H
#define FGPROF_BASE_BOUNDED_COPY_H

#include <stdint.h>

#define BOUNDED_COPY_BYTES_MAX (256ull << 20)

/* Returns a descriptor or a negative errno. Runs in the other process, which should not allocate
 * memory and has no descriptor but `dir_fd`. */
typedef int bounded_open_fn(void *context, int dir_fd);

/* Waits for at most `*wait_ns`, and subtracts the time that it waited. `dir_fd` is passed to
 * `open_file`. Returns the descriptor of the copy; -ETIMEDOUT; -EFBIG if the file is larger than
 * the limit; or another negative errno. */
int bounded_copy(bounded_open_fn *open_file, void *context, int dir_fd, uint64_t *wait_ns);

#endif
