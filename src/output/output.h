/* The writers: one a format. What is written are the samples of the view. Errors are in the sink.
 */
#ifndef FGPROF_OUTPUT_OUTPUT_H
#define FGPROF_OUTPUT_OUTPUT_H

#include "output/sink.h"
#include "profile/view.h"

void output_folded(const struct fgprof_profile *profile, const struct profile_view *view,
                   struct sink *sink);
void output_html(const struct fgprof_profile *profile, const struct profile_view *view,
                 struct sink *sink);
void output_pprof(const struct fgprof_profile *profile, const struct profile_view *view,
                  struct sink *sink);
void output_speedscope(const struct fgprof_profile *profile, const struct profile_view *view,
                       struct sink *sink);
void output_raw(const struct fgprof_profile *profile, const struct profile_view *view,
                struct sink *sink);
void output_text(const struct fgprof_profile *profile, const struct profile_view *view,
                 struct sink *sink);

#endif
