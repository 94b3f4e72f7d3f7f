#include "output/output.h"
#include "recording/recording.h"
#include "profile/objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void write_raw(const struct fgprof_profile *profile, const struct profile_view *view,
                      struct sink *sink)
{
    (void)view;
    recording_write(profile, sink);
}

static const struct {
    void (*write)(const struct fgprof_profile *profile, const struct profile_view *view,
                  struct sink *sink);
    bool is_gzip;
    bool tells_places; /* of owners: see profile_view_make */
} writers[] = {
    [FGPROF_FOLDED] = {output_folded, false, false},
    [FGPROF_PPROF] = {output_pprof, true, false},
    [FGPROF_TEXT] = {output_text, false, false},
    [FGPROF_SPEEDSCOPE] = {output_speedscope, false, false},
    [FGPROF_RAW] = {write_raw, true, false},
    [FGPROF_HTML] = {output_html, false, true},
    [FGPROF_REPORT] = {output_report, false, false},
    [FGPROF_REPORT_JSON] = {output_report_json, false, false},
    [FGPROF_OTLP] = {output_otlp, true, false},
    [FGPROF_FIREFOX] = {output_firefox, true, false},
};

int fgprof_profile_write(const fgprof_profile *profile, enum fgprof_format format, int fd)
{
    if ((unsigned)format >= sizeof writers / sizeof *writers)
        return -EINVAL;
    if (format == FGPROF_RAW && profile->kind != FGPROF_KIND_WALL &&
        !profile_is_of_objects(profile))
        return -EINVAL;
    if ((format == FGPROF_SPEEDSCOPE || format == FGPROF_FIREFOX) && profile_is_of_objects(profile))
        return -EINVAL;
    struct profile_view view;
    struct sink *sink = malloc(sizeof *sink);
    if (!sink || profile_view_make(profile, writers[format].tells_places, &view)) {
        free(sink);
        return -ENOMEM;
    }
    sink_open(sink, fd, writers[format].is_gzip);
    writers[format].write(profile, &view, sink);
    int err = sink_close(sink);
    profile_view_free(&view);
    free(sink);
    return err;
}

static void write_pair(const struct profile_pair *pair, enum fgprof_format format,
                       bool is_normalized, struct sink *sink)
{
    if (format == FGPROF_HTML)
        output_html_difference(pair, is_normalized, sink);
    else if (format == FGPROF_REPORT)
        output_report_difference(pair, is_normalized, sink);
    else
        output_folded_difference(pair, is_normalized, sink);
}

/* Profiles of time and of objects can't be compared, nor those of different objects. */
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
    int err = fgprof_profile_subtract(after, before, &difference);
    if (err)
        return err;
    err = fgprof_profile_write(difference, format, fd);
    profile_free(difference);
    return err;
}

int fgprof_profile_write_difference(const fgprof_profile *before, const fgprof_profile *after,
                                    enum fgprof_format format, bool is_normalized, int fd)
{
    if (!can_compare(before, after))
        return -EINVAL;
    if ((format == FGPROF_REPORT && profile_is_of_objects(before)) || format == FGPROF_REPORT_JSON)
        return write_report(before, after, format, fd);
    if (format != FGPROF_FOLDED && format != FGPROF_HTML && format != FGPROF_REPORT)
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
