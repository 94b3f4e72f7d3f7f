#include "wait/file_lock.h"
#include "base/array.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool file_lock_parse(const char *line, struct file_lock *ret_lock)
{
    static const struct {
        const char *name;
        enum file_use use;
    } kinds[] = {
        {"FLOCK", FILE_USE_FLOCK}, {"POSIX", FILE_USE_POSIX_LOCK}, {"OFDLCK", FILE_USE_OFD_LOCK}};
    char kind[8];
    int used = 0;
    struct file_lock lock = {0};
    if (sscanf(line, " %*u: %n", &used) < 0 || !used)
        return false;
    line += used;
    lock.waits = strncmp(line, "->", 2) == 0;
    line += lock.waits ? 2 : 0;
    if (sscanf(line, " %7[A-Z] %*s %*s %d %x:%x:%" SCNu64, kind, &lock.process_id, &lock.major,
               &lock.minor, &lock.inode) != 5)
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kind, kinds[i].name) == 0)
            lock.use = kinds[i].use;
    }
    if (lock.use == FILE_USE_OTHER)
        return false;
    *ret_lock = lock;
    return true;
}

int file_locks_add_line(struct file_locks *locks, const char *line)
{
    struct file_lock lock;
    if (!file_lock_parse(line, &lock)) {
        locks->has_held = false;
        return 0;
    }
    if (!lock.waits) {
        locks->held = lock;
        locks->has_held = true;
        return 0;
    }
    /* The lock may be of a process in another namespace. */
    if (!locks->has_held || locks->held.inode != lock.inode || locks->held.major != lock.major ||
        locks->held.minor != lock.minor)
        return 0;
    return array_append(&locks->waits, &locks->count, &locks->capacity,
                        (struct file_lock_wait){lock, locks->held});
}

int file_locks_read(struct file_locks *locks)
{
    char *line = NULL;
    size_t line_bytes = 0;
    int err = 0;
    FILE *file = fopen("/proc/locks", "re");
    if (!file)
        return -errno;
    locks->has_held = false;
    while (!err && getline(&line, &line_bytes, file) > 0)
        err = file_locks_add_line(locks, line);
    free(line);
    fclose(file);
    return err;
}

void file_locks_free(struct file_locks *locks)
{
    free(locks->waits);
    *locks = (struct file_locks){0};
}

pid_t file_locks_holder(const struct file_locks *locks, enum file_use use, uint64_t inode,
                        pid_t waiter)
{
    pid_t holder = 0;
    if (use == FILE_USE_OFD_LOCK)
        waiter = -1;
    for (size_t i = 0; i < locks->count; i++) {
        const struct file_lock_wait *wait = &locks->waits[i];
        if (wait->waiter.use != use || wait->waiter.inode != inode ||
            wait->waiter.process_id != waiter)
            continue;
        /* Other threads of the process may wait for other parts, or for a file with that number on
         * another device. */
        if (wait->held.process_id <= 0 || (holder && holder != wait->held.process_id))
            return 0;
        holder = wait->held.process_id;
    }
    return holder;
}
