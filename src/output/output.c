#include "output/output.h"
#include "recording/recording.h"

#include <errno.h>
#include <stdlib.h>

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
};

int output_write(const struct fgprof_profile *profile, enum fgprof_format format, int fd)
{
    if ((unsigned)format >= sizeof writers / sizeof *writers)
        return -EINVAL;
    if (format == FGPROF_RAW && profile->kind != FGPROF_KIND_WALL &&
        !profile_is_of_objects(profile))
        return -EINVAL;
    if (format == FGPROF_SPEEDSCOPE && profile_is_of_objects(profile))
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
