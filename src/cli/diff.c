#include "cli/commands.h"
#include "cli/convert.h"
#include "cli/sandboxed.h"
#include "cli/say.h"

#include <unistd.h>

#define ALIKE 0.02 /* of durations */

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
    if (has_objects != is_of_objects(profiles->after))
        return say("%s and %s can't be compared: one is a profile of objects, the other of time",
                   names[0], names[1]);
    /* Both kinds of heap profiles have the same values. */
    if (has_objects)
        fgprof_profile_set_kind(profiles->after, fgprof_profile_kind(profiles->before));
    return true;
}

/* Times of recordings that took differently long can't be compared as they are. Says so. */
static bool is_normalized(const struct cli_options *options, const struct two_profiles *profiles)
{
    struct fgprof_summary before, after;
    if (options->is_normalized || options->is_not_normalized || is_of_objects(profiles->before))
        return options->is_normalized;
    fgprof_profile_summary(profiles->before, &before, sizeof before);
    fgprof_profile_summary(profiles->after, &after, sizeof after);
    double ratio = after.elapsed_ns ? (double)before.elapsed_ns / (double)after.elapsed_ns : 1;
    if (ratio > 1 - ALIKE && ratio < 1 + ALIKE)
        return false;
    say("%.1f s are compared with %.1f s: normalized, with as many samples before as after "
        "(--no-normalize: as they are)",
        (double)before.elapsed_ns / 1e9, (double)after.elapsed_ns / 1e9);
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
                                              is_normalized(options, &profiles), STDOUT_FILENO));
    fgprof_profile_free(profiles.before);
    fgprof_profile_free(profiles.after);
    return status;
}

int command_diff(const struct cli_options *options)
{
    return sandboxed_run(options, 2, compare);
}
