/* The limit of a file's size (RLIMIT_FSIZE). A write or ftruncate(2) that goes beyond it, also in a
 * memfd, raises SIGXFSZ, which ends the program. */
#ifndef FGPROF_BASE_FILE_LIMIT_H
#define FGPROF_BASE_FILE_LIMIT_H

#include <stdint.h>
#include <sys/resource.h>

static inline uint64_t file_limit_bytes(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) ? UINT64_MAX : limit.rlim_cur;
}

#endif
