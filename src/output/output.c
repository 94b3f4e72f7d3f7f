#include "output/output.h"

#include <errno.h>
#include <stdlib.h>

int fgprof_profile_write(const fgprof_profile *profile, enum fgprof_format format, int fd)
{
    if (format != FGPROF_FOLDED && format != FGPROF_PPROF && format != FGPROF_TEXT)
        return -EINVAL;
    struct sink *sink = malloc(sizeof *sink);
    if (!sink)
        return -ENOMEM;
    sink_open(sink, fd, format == FGPROF_PPROF);
    if (format == FGPROF_FOLDED)
        output_folded(profile, sink);
    else if (format == FGPROF_PPROF)
        output_pprof(profile, sink);
    else
        output_text(profile, sink);
    int err = sink_close(sink);
    free(sink);
    return err;
}
