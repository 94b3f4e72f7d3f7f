#include "cli/commands.h"
#include "cli/convert.h"
#include "cli/sandboxed.h"

#include <stdio.h>
#include <unistd.h>

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
        fputs("fgprof-c: only differences of objects have a report: for time, give -f "
              "folded or html\n",
              stderr);
        return false;
    }
    /* Both kinds of heap profiles have the same values. */
    if (has_objects)
        fgprof_profile_set_kind(profiles->after, fgprof_profile_kind(profiles->before));
    return true;
}

static int compare(const struct cli_options *options, const int *inputs)
{
    int status = EXIT_NOT_WRITTEN;
    struct two_profiles profiles = {convert_read(options, options->inputs[0], inputs[0]), NULL};
    if (profiles.before)
        profiles.after = convert_read(options, options->inputs[1], inputs[1]);
    if (profiles.after && fit(options, &profiles))
        status = convert_written(options, fgprof_profile_write_difference(
                                              profiles.before, profiles.after, options->format,
                                              options->is_normalized, STDOUT_FILENO));
    fgprof_profile_free(profiles.before);
    fgprof_profile_free(profiles.after);
    return status;
}

int command_diff(const struct cli_options *options)
{
    return sandboxed_run(options, 2, compare);
}
