/* The limits of this process's files (getrlimit(2)). */
#ifndef FGPROF_BASE_FILE_LIMIT_H
#define FGPROF_BASE_FILE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* The limit of a file's size. A write or ftruncate(2) that goes beyond it, also in a memfd, raises
 * SIGXFSZ, which ends the program. */
static inline uint64_t file_limit_bytes(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) ? UINT64_MAX : limit.rlim_cur;
}

/* Whether this many descriptors behind `fd`, or a quarter of a low limit, stay free for others. */
static inline bool file_limit_leaves(int fd, unsigned reserve)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return true;
    rlim_t part = limit.rlim_cur / 4;
    return (rlim_t)fd + (part < reserve ? part : reserve) < limit.rlim_cur;
}

#endif
