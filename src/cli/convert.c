#include "commands.h"
#include "help.h"
#include "render.h"

static int write_profile(const struct render_options *options, void *profile, int fd)
{
    return fgprof_profile_write(profile, options->format, fd);
}

int command_convert(int argc, char **argv)
{
    struct render_options options;
    enum render_parsed parsed = render_parse(argc, argv, false, &options);
    if (parsed == RENDER_HELP) {
        help_convert();
        return EXIT_WRITTEN;
    }
    if (parsed == RENDER_WRONG)
        return EXIT_USAGE;

    int status = EXIT_NOT_WRITTEN;
    fgprof_profile *profile = render_read(&options, options.inputs[0]);
    if (profile)
        status = render_write(&options, write_profile, profile);
    fgprof_profile_free(profile);
    return status;
}
