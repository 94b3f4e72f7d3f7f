#ifndef FGPROF_TESTS_RECORDING_READ_AGAIN_H
#define FGPROF_TESTS_RECORDING_READ_AGAIN_H

#include "make_profile.h"

#include <stdio.h>

/* Writes the profile as a recording, and reads it back. */
static inline struct fgprof_profile *read_again(struct fgprof_profile *profile)
{
    struct fgprof_profile *again;
    size_t length;
    char path[64], *file = written(profile, FGPROF_RAW, &length);
    int fd = file_of(file, length);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(fgprof_profile_read(path, &again), 0);
    close(fd);
    free(file);
    fgprof_profile_free(profile);
    return again;
}

#endif
