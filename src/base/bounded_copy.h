/* Copies a file from a file system that may never answer, and waits only for a limited time. A
 * thread that waits for such a file system may not end even when it is killed, and its process
 * can't end either. So a child process opens and reads the file; if it does not finish, it is
 * killed and not waited for. */
#ifndef FGPROF_BASE_BOUNDED_COPY_H
#define FGPROF_BASE_BOUNDED_COPY_H

#include <stdint.h>

#define BOUNDED_COPY_BYTES_MAX (256ull << 20)

/* Returns a descriptor or a negative errno. Runs in the other process, which has no
 * descriptor but `dir_fd`. It must not allocate memory: another thread may have held the
 * allocator's lock when the process started. */
typedef int bounded_open_fn(void *context, int dir_fd);

/* Waits for at most `*wait_ns`, and subtracts the time that it waited. `dir_fd` is passed to
 * `open_file`. The copy is a file in memory, with the holes of the original. Returns its
 * descriptor; -ETIMEDOUT; -EFBIG if the file is larger than the limit; -EAGAIN if too many earlier
 * processes still hang; or another negative errno. */
int bounded_copy(bounded_open_fn *open_file, void *context, int dir_fd, uint64_t *wait_ns);

/* Collects the processes of earlier copies, and waits a moment for those that are still ending. The
 * next copy collects them too. */
void bounded_copy_end(void);

#endif
