#include "cli/render.h"
#include "cli/commands.h"
#include "cli/output_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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
        return "it is too large: more than 256 MiB when decompressed";
    default:
        return strerror(-error);
    }
}

static void complain_of_version(const char *path)
{
    unsigned version;
    if (fgprof_recording_version(path, &version))
        version = FGPROF_RECORDING_VERSION + 1;
    fprintf(stderr,
            "fgprof-c: %s can't be read: its format is version %u, and this program knows version "
            "%u: use a newer fgprof-c\n",
            path, version, FGPROF_RECORDING_VERSION);
}

fgprof_profile *render_read(const struct cli_options *options, const char *path)
{
    fgprof_profile *profile;
    int err = fgprof_profile_read(path, &profile);
    if (err) {
        if (err == -EPROTONOSUPPORT)
            complain_of_version(path);
        else
            fprintf(stderr, "fgprof-c: %s can't be read: %s\n", path, why_unread(err));
        return NULL;
    }
    options_for_profile(options, profile);
    fgprof_profile_set_threads(profile, options_threads(options));
    if (fgprof_profile_set_command(profile, options->command_line)) {
        fprintf(stderr, "fgprof-c: %s can't be read: %s\n", path, strerror(ENOMEM));
        fgprof_profile_free(profile);
        return NULL;
    }
    return profile;
}

int render_write(const struct cli_options *options, render_fn *write, void *context)
{
    struct output_file file;
    int err = output_file_open(&file, options->output);
    if (!err)
        err = write(options, context, file.fd);
    if (!err)
        err = output_file_commit(&file);
    if (err) {
        if (err == -ENODATA && options->shows_elapsed)
            fprintf(stderr,
                    "fgprof-c: %s has no elapsed time: it was recorded by an older fgprof-c\n",
                    options->command == COMMAND_DIFF ? "one of them" : options->inputs[0]);
        else if (err == -ENODATA)
            fprintf(stderr,
                    "fgprof-c: %s has no timeline, which speedscope needs: record again with "
                    "-o FILE.fgprof\n",
                    options->inputs[0]);
        else
            fprintf(stderr, "fgprof-c: %s can't be written: %s\n",
                    output_file_name(options->output), strerror(-err));
        output_file_abandon(&file);
    }
    return err ? EXIT_NOT_WRITTEN : EXIT_WRITTEN;
}
