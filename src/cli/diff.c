#include "cli/commands.h"
#include "cli/render.h"

struct two_profiles {
    fgprof_profile *before, *after;
};

static int write_difference(const struct cli_options *options, void *context, int fd)
{
    const struct two_profiles *profiles = context;
    return fgprof_profile_write_difference(profiles->before, profiles->after, options->format,
                                           options->is_normalized, fd);
}

int command_diff(const struct cli_options *options)
{
    int status = EXIT_NOT_WRITTEN;
    struct two_profiles profiles = {render_read(options, options->inputs[0]), NULL};
    if (profiles.before)
        profiles.after = render_read(options, options->inputs[1]);
    if (profiles.after)
        status = render_write(options, write_difference, &profiles);
    fgprof_profile_free(profiles.before);
    fgprof_profile_free(profiles.after);
    return status;
}
