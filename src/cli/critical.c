#include "cli/critical.h"
#include "cli/escape.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int critical_make(const struct cli_options *options, fgprof_profile *profile)
{
    if (!options->critical || options->format == FGPROF_RAW)
        return 0;
    int err = fgprof_profile_set_critical(profile, options->critical);
    /* It was recorded by id, to tell which thread ended a wait. */
    return err ? err : fgprof_profile_set_threads(profile, options_threads(options));
}

void critical_complain(const struct cli_options *options, const char *path, int err)
{
    if (err == -ENODATA && path) {
        fprintf(stderr,
                "fgprof-c: %s does not tell what ended waits, as --critical needs: record again "
                "with --capture=record -o FILE.fgprof\n",
                path);
    } else if (err == -ENODATA) {
        fputs("fgprof-c: --critical: no wait that a tick found has ended\n", stderr);
    } else if (err == -ENOENT) {
        fprintf(stderr, "fgprof-c: --critical: there was no %s '",
                strchr(options->critical, '=') ? "label" : "thread");
        print_escaped(options->critical);
        fputs("'\n", stderr);
    } else if (err == -EINVAL) {
        fputs("fgprof-c: --critical is for recordings of time\n", stderr);
    } else {
        fprintf(stderr, "fgprof-c: --critical: %s\n", strerror(-err));
    }
}
