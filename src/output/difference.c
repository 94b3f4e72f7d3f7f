#include "output/output.h"

#include <errno.h>
#include <stdlib.h>

static void write_pair(const struct profile_pair *pair, enum fgprof_format format,
                       bool is_normalized, struct sink *sink)
{
    if (format == FGPROF_HTML)
        output_html_difference(pair, is_normalized, sink);
    else
        output_folded_difference(pair, is_normalized, sink);
}

int output_write_difference(const struct fgprof_profile *before, const struct fgprof_profile *after,
                            enum fgprof_format format, bool is_normalized, int fd)
{
    if (format != FGPROF_FOLDED && format != FGPROF_HTML)
        return -EINVAL;
    struct profile_pair pair = {.before = before, .after = after};
    struct sink *sink = malloc(sizeof *sink);
    int err = sink ? profile_view_make(before, false, &pair.view_before) : -ENOMEM;
    if (!err)
        err = profile_view_make(after, false, &pair.view_after);
    if (!err) {
        sink_open(sink, fd, false);
        write_pair(&pair, format, is_normalized, sink);
        err = sink_close(sink);
    }
    profile_view_free(&pair.view_before);
    profile_view_free(&pair.view_after);
    free(sink);
    return err;
}
