/* The version of the kernel that runs. */
#ifndef FGPROF_BASE_KERNEL_VERSION_H
#define FGPROF_BASE_KERNEL_VERSION_H

#include <stdbool.h>

struct kernel_version {
    unsigned major, minor;
};

/* If it can't be read, it is newer than any. */
struct kernel_version kernel_version_read(void);

static inline bool kernel_version_is_before(struct kernel_version version, unsigned major,
                                            unsigned minor)
{
    return version.major < major || (version.major == major && version.minor < minor);
}

#endif
