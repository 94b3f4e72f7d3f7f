#include "cli/critical.h"
#include "cli/say.h"

#include <errno.h>
#include <string.h>

int critical_make(const struct cli_options *options, fgprof_profile *profile)
{
    bool is_followed = options->critical && options->format != FGPROF_RAW;
    return is_followed ? fgprof_profile_set_critical(profile, options->critical) : 0;
}

void critical_complain(const struct cli_options *options, const char *path, int err)
{
    if (err == -ENODATA && path)
        say("%s does not tell what ended waits, as --critical needs: record again with "
            "--capture=record -o FILE.fgprof",
            path);
    else if (err == -ENODATA)
        say("--critical: no wait that a tick found has ended");
    else if (err == -ENOENT)
        say("--critical: there was no %s '%s'", strchr(options->critical, '=') ? "label" : "thread",
            options->critical);
    else if (err == -EINVAL)
        say("--critical is for recordings of time");
    else
        say("--critical: %s", strerror(-err));
}
