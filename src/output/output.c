#include "output/output.h"

#include <errno.h>
#include <stdlib.h>

static const struct {
    void (*write)(const struct fgprof_profile *profile, struct sink *sink);
    bool is_gzip;
} writers[] = {
    [FGPROF_FOLDED] = {output_folded, false},
    [FGPROF_PPROF] = {output_pprof, true},
    [FGPROF_TEXT] = {output_text, false},
};

int fgprof_profile_write(const fgprof_profile *profile, enum fgprof_format format, int fd)
{
    if ((unsigned)format >= sizeof writers / sizeof *writers)
        return -EINVAL;
    struct sink *sink = malloc(sizeof *sink);
    if (!sink)
        return -ENOMEM;
    sink_open(sink, fd, writers[format].is_gzip);
    writers[format].write(profile, sink);
    int err = sink_close(sink);
    free(sink);
    return err;
}
