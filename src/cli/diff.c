#include "cli/commands.h"
#include "cli/convert.h"

#include <stdio.h>

struct two_profiles {
    fgprof_profile *before, *after;
};

static bool is_of_objects(const fgprof_profile *profile)
{
    return fgprof_profile_kind(profile) >= FGPROF_KIND_HEAP;
}

/* Whether there can be a difference of the two. If not, prints the reason. */
static bool fit(const struct cli_options *options, const struct two_profiles *profiles)
{
    const char *const *names = (const char *const *)options->inputs;
    bool has_objects = is_of_objects(profiles->before);
    if (has_objects != is_of_objects(profiles->after)) {
        fprintf(stderr,
                "fgprof-c: %s and %s can't be compared: one is a profile of objects, the other of "
                "time\n",
                names[0], names[1]);
        return false;
    }
    if (options->format == FGPROF_REPORT && !has_objects) {
        fputs("fgprof-c: only profiles of objects have a report of a difference: for time, give -f "
              "folded or html\n",
              stderr);
        return false;
    }
    /* Both kinds of heap profiles have the same values. */
    if (has_objects)
        fgprof_profile_set_kind(profiles->after, fgprof_profile_kind(profiles->before));
    return true;
}

static int write_difference(const struct cli_options *options, void *context, int fd)
{
    const struct two_profiles *profiles = context;
    return fgprof_profile_write_difference(profiles->before, profiles->after, options->format,
                                           options->is_normalized, fd);
}

int command_diff(const struct cli_options *options)
{
    int status = EXIT_NOT_WRITTEN;
    struct two_profiles profiles = {convert_read(options, options->inputs[0]), NULL};
    if (profiles.before)
        profiles.after = convert_read(options, options->inputs[1]);
    if (profiles.after && fit(options, &profiles))
        status = convert_write(options, write_difference, &profiles);
    fgprof_profile_free(profiles.before);
    fgprof_profile_free(profiles.after);
    return status;
}
