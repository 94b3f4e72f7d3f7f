/* Writing recordings in another format: `convert`, `report` and `diff`. */
#include "cli/commands.h"
#include "cli/critical.h"
#include "cli/options/formats.h"
#include "cli/output_file.h"
#include "cli/sandboxed.h"
#include "cli/say.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char *why_unread(int error)
{
    switch (error) {
    case -ENOEXEC:
        return "it is not a regular file";
    case -EILSEQ:
        return "it is not a recording of fgprof-c (make one with -o FILE.fgprof)";
    case -EBADMSG:
        return "it is damaged";
    case -ENODATA:
        return "it is cut short";
    case -EFBIG:
        return "it is too large: more than 256 MiB when decompressed, or 1 GiB in memory";
    default:
        return strerror(-error);
    }
}

static bool is_of_objects(const fgprof_profile *profile)
{
    return fgprof_profile_kind(profile) >= FGPROF_KIND_HEAP;
}

/* Why the profile can't be written as the options say; NULL: it can. */
static const char *why_unfit(const struct cli_options *options, const fgprof_profile *profile)
{
    if (!is_of_objects(profile))
        return NULL;
    if (options->kept != FGPROF_KEPT_ALL)
        return "--on-cpu and --off-cpu are for time";
    if (options->shows_elapsed)
        return "--elapsed is for time";
    if (format_of_order(options->format) && options->command == COMMAND_CONVERT)
        return "this format shows time: give -f folded, pprof, text or html";
    return NULL;
}

/* Sets the profile to be written as the options say. If it can't, prints the reason. */
static bool set_up(const struct cli_options *options, const char *path, fgprof_profile *profile)
{
    const char *unfit = why_unfit(options, profile);
    if (unfit)
        return say("%s is a profile of objects, not of time: %s", path, unfit);
    int err = critical_make(options, profile);
    if (err) {
        critical_complain(options, path, err);
        return false;
    }
    err = options_for_profile(options, profile);
    if (err == -EINVAL)
        return say("%s is a profile of %s, which can't be shown as --kind %s", path,
                   is_of_objects(profile) ? "objects" : "time", kind_names[options->kind]);
    return !err || say("%s can't be read: %s", path, strerror(-err));
}

/* Reads the recording `path`, which is open as `fd` (or, if negative, the errno says why not), and
 * configures its output as in the options. If it can't be read, prints the reason on stderr and
 * returns NULL. */
static fgprof_profile *read_profile(const struct cli_options *options, const char *path, int fd)
{
    fgprof_profile *profile;
    unsigned version;
    int err = fd < 0 ? fd : fgprof_profile_read_fd(fd, path, &version, &profile);
    if (err) {
        if (err == -EPROTONOSUPPORT)
            say("%s can't be read: its format is version %u, and this program knows version %u: "
                "use a newer fgprof-c",
                path, version, FGPROF_RECORDING_VERSION);
        else
            say("%s can't be read: %s", path, why_unread(err));
        return NULL;
    }
    if (!set_up(options, path, profile)) {
        fgprof_profile_free(profile);
        return NULL;
    }
    return profile;
}

/* ---- Writing ---- */

static void complain_of_write(const struct cli_options *options, int err)
{
    if (err == -ENODATA && options->shows_elapsed)
        say("%s has no elapsed time: it was recorded by an older fgprof-c",
            options->command == COMMAND_DIFF ? "one of them" : options->inputs[0]);
    else if (err == -ENODATA)
        say("%s has no timeline, which this format needs: record again with -o FILE.fgprof",
            options->inputs[0]);
    else if (err == -EINVAL && options->command == COMMAND_DIFF)
        say("%s and %s can't be compared: they are of two kinds, or were sampled at two rates",
            options->inputs[0], options->inputs[1]);
    else
        say("%s can't be written: %s", output_file_name(options->output), strerror(-err));
}

/* Takes the result of writing the profile: 0 or a negative errno, which is printed on stderr.
 * Returns the command's exit status. */
static int status_of(const struct cli_options *options, int err)
{
    if (err)
        complain_of_write(options, err);
    return err ? EXIT_NOT_WRITTEN : EXIT_WRITTEN;
}

static int convert(const struct cli_options *options, const int *inputs)
{
    int status = EXIT_NOT_WRITTEN;
    fgprof_profile *profile = read_profile(options, options->inputs[0], inputs[0]);
    if (profile)
        status = status_of(options, fgprof_profile_write(profile, options->format, STDOUT_FILENO));
    fgprof_profile_free(profile);
    return status;
}

int command_convert(const struct cli_options *options)
{
    return sandboxed_run(options, 1, convert);
}

/* ---- diff ---- */

#define ALIKE 0.02 /* durations that differ by less are not normalized */

struct two_profiles {
    fgprof_profile *before, *after;
};

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
    struct two_profiles profiles = {read_profile(options, options->inputs[0], inputs[0]), NULL};
    if (profiles.before)
        profiles.after = read_profile(options, options->inputs[1], inputs[1]);
    if (profiles.after && fit(options, &profiles))
        status = status_of(options, fgprof_profile_write_difference(
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
