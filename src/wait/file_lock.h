/* The holders of file locks that threads wait for, from /proc/locks. */
#ifndef FGPROF_WAIT_FILE_LOCK_H
#define FGPROF_WAIT_FILE_LOCK_H

#include "observe/call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One line of the file. Ids are of processes in our PID namespace; -1: none, for a lock of an open
 * file description; 0: not in our namespace. */
struct file_lock {
    enum file_use use;
    bool waits; /* for the last line that does not */
    pid_t process_id;
    unsigned major, minor;
    uint64_t inode;
};

/* Parses a line such as
 *   1: POSIX  ADVISORY  WRITE 15864 fe:00:10953261 0 9
 *   1: -> POSIX  ADVISORY  WRITE 15885 fe:00:10953261 0 9
 *   1:  -> OFDLCK ADVISORY  WRITE -1 fe:00:10953261 0 9
 * (proc_locks(5)): a lock, a lock that waits for it, and one that waits for that. Returns false if
 * it is not one, or is of a kind that no call waits for, such as a lease. */
bool file_lock_parse(const char *line, struct file_lock *ret_lock);

/* A lock that is waited for, and by which process. */
struct file_lock_wait {
    struct file_lock waiter, held;
};

/* Starts zeroed. */
struct file_locks {
    struct file_lock_wait *waits;
    size_t count, capacity;
    struct file_lock held; /* of the lines added, the last that does not wait */
    bool has_held;
};

/* Adds a line of /proc/locks, after those before it. Returns 0 or -ENOMEM. */
int file_locks_add_line(struct file_locks *locks, const char *line);

/* Adds all of /proc/locks. Returns 0 or a negative errno. */
int file_locks_read(struct file_locks *locks);
void file_locks_free(struct file_locks *locks);

/* The holder of the lock that the process waits for, on the file with this inode number. Returns
 * its process, or 0 if that is not known, or there are several. */
pid_t file_locks_holder(const struct file_locks *locks, enum file_use use, uint64_t inode,
                        pid_t waiter);

#endif
