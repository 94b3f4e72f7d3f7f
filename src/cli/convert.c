#include "cli/commands.h"
#include "cli/render.h"

static int write_profile(const struct cli_options *options, void *profile, int fd)
{
    return fgprof_profile_write(profile, options->format, fd);
}

int command_convert(const struct cli_options *options)
{
    int status = EXIT_NOT_WRITTEN;
    fgprof_profile *profile = render_read(options, options->inputs[0]);
    if (profile)
        status = render_write(options, write_profile, profile);
    fgprof_profile_free(profile);
    return status;
}
