/* What was found: the functions of fgprof.h on profiles. */
#include "kept/file.h"
#include "output/output.h"
#include "profile/function_times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct fgprof_summary *fgprof_profile_summary(const fgprof_profile *profile)
{
    return &profile->summary;
}

const char *fgprof_profile_unreadable_module(const fgprof_profile *profile, size_t number)
{
    return number < profile->unreadable_count
               ? strings_get(&profile->strings, profile->unreadable[number])
               : NULL;
}

int fgprof_profile_functions(const fgprof_profile *profile, const pid_t *tids, size_t tid_count,
                             struct fgprof_function **ret_rows, size_t *ret_count)
{
    return profile_functions(profile, tids, tid_count, ret_rows, ret_count);
}

int fgprof_profile_activities(const fgprof_profile *profile, struct fgprof_activity **ret_rows,
                              size_t *ret_count)
{
    return profile_activities(profile, ret_rows, ret_count);
}

int fgprof_profile_set_folded_flags(fgprof_profile *profile, unsigned flags)
{
    if (flags & ~(unsigned)(FGPROF_FOLDED_THREADS | FGPROF_FOLDED_LINES | FGPROF_FOLDED_STATE |
                            FGPROF_FOLDED_PROCESSES))
        return -EINVAL;
    profile->folded_flags = flags;
    return 0;
}

int fgprof_profile_set_kept(fgprof_profile *profile, enum fgprof_kept kept)
{
    if (kept != FGPROF_KEPT_ALL && kept != FGPROF_KEPT_ON_CPU && kept != FGPROF_KEPT_OFF_CPU)
        return -EINVAL;
    profile->kept = kept;
    return 0;
}

int fgprof_profile_set_threads(fgprof_profile *profile, enum fgprof_threads threads)
{
    if (threads != FGPROF_THREADS_BY_NAME && threads != FGPROF_THREADS_BY_ID)
        return -EINVAL;
    profile->threads = threads;
    return 0;
}

int fgprof_profile_set_command(fgprof_profile *profile, const char *command)
{
    char *copy = command ? strdup(command) : NULL;
    if (command && !copy)
        return -ENOMEM;
    free(profile->command);
    profile->command = copy;
    return 0;
}

int fgprof_profile_write(const fgprof_profile *profile, enum fgprof_format format, int fd)
{
    return output_write(profile, format, fd);
}

int fgprof_profile_read(const char *path, fgprof_profile **ret_profile)
{
    return kept_file_read(path, ret_profile);
}

int fgprof_recording_version(const char *path, unsigned *ret_version)
{
    return kept_file_version(path, ret_version);
}

int fgprof_profile_write_difference(const fgprof_profile *before, const fgprof_profile *after,
                                    enum fgprof_format format, bool is_normalized, int fd)
{
    return output_write_difference(before, after, format, is_normalized, fd);
}

void fgprof_profile_free(fgprof_profile *profile)
{
    profile_free(profile);
}
