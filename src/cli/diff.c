#include "commands.h"
#include "help.h"
#include "render.h"

#include <stddef.h>

struct two_profiles {
    fgprof_profile *before, *after;
};

static int write_difference(const struct render_options *options, void *context, int fd)
{
    const struct two_profiles *profiles = context;
    return fgprof_profile_write_difference(profiles->before, profiles->after,
                                           options->is_normalized, fd);
}

int command_diff(int argc, char **argv)
{
    struct render_options options;
    enum render_parsed parsed = render_parse(argc, argv, true, &options);
    if (parsed == RENDER_HELP) {
        help_diff();
        return EXIT_WRITTEN;
    }
    if (parsed == RENDER_WRONG)
        return EXIT_USAGE;

    int status = EXIT_NOT_WRITTEN;
    struct two_profiles profiles = {render_read(&options, options.inputs[0]), NULL};
    if (profiles.before)
        profiles.after = render_read(&options, options.inputs[1]);
    if (profiles.after)
        status = render_write(&options, write_difference, &profiles);
    fgprof_profile_free(profiles.before);
    fgprof_profile_free(profiles.after);
    return status;
}
