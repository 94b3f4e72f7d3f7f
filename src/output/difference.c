#include "output/output.h"
#include "profile/objects.h"
#include "profile/subtract.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void write_pair(const struct profile_pair *pair, enum fgprof_format format,
                       bool is_normalized, struct sink *sink)
{
    if (format == FGPROF_HTML)
        output_html_difference(pair, is_normalized, sink);
    else
        output_folded_difference(pair, is_normalized, sink);
}

/* Time and objects have nothing in common, nor have objects of two kinds. */
static bool can_compare(const struct fgprof_profile *before, const struct fgprof_profile *after)
{
    if (!profile_is_of_objects(before) && !profile_is_of_objects(after))
        return true;
    return before->kind == after->kind &&
           strcmp(objects_kind_name(before), objects_kind_name(after)) == 0;
}

static int write_report(const struct fgprof_profile *before, const struct fgprof_profile *after,
                        enum fgprof_format format, int fd)
{
    struct fgprof_profile *difference;
    int err = profile_subtract_objects(after, before, &difference);
    if (err)
        return err;
    err = output_write(difference, format, fd);
    profile_free(difference);
    return err;
}

int output_write_difference(const struct fgprof_profile *before, const struct fgprof_profile *after,
                            enum fgprof_format format, bool is_normalized, int fd)
{
    if (!can_compare(before, after))
        return -EINVAL;
    if (format == FGPROF_REPORT || format == FGPROF_REPORT_JSON)
        return write_report(before, after, format, fd);
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
