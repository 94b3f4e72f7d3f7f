/* The writers: one per format. They write the samples of the view. Errors are in the sink. */
#ifndef FGPROF_OUTPUT_OUTPUT_H
#define FGPROF_OUTPUT_OUTPUT_H

#include "base/sink.h"
#include "profile/view.h"

/* Two profiles to compare, and their views. */
struct profile_pair {
    const struct fgprof_profile *before, *after;
    struct profile_view view_before, view_after;
};

void output_firefox(const struct fgprof_profile *profile, const struct profile_view *view,
                    struct sink *sink);
void output_folded(const struct fgprof_profile *profile, const struct profile_view *view,
                   struct sink *sink);
void output_html(const struct fgprof_profile *profile, const struct profile_view *view,
                 struct sink *sink);
void output_otlp(const struct fgprof_profile *profile, const struct profile_view *view,
                 struct sink *sink);
void output_pprof(const struct fgprof_profile *profile, const struct profile_view *view,
                  struct sink *sink);
void output_report(const struct fgprof_profile *profile, const struct profile_view *view,
                   struct sink *sink);
void output_report_json(const struct fgprof_profile *profile, const struct profile_view *view,
                        struct sink *sink);
void output_speedscope(const struct fgprof_profile *profile, const struct profile_view *view,
                       struct sink *sink);
void output_text(const struct fgprof_profile *profile, const struct profile_view *view,
                 struct sink *sink);

/* `is_normalized`: scales the profile before to the total of the one after. */
void output_folded_difference(const struct profile_pair *pair, bool is_normalized,
                              struct sink *sink);
void output_html_difference(const struct profile_pair *pair, bool is_normalized, struct sink *sink);
void output_report_difference(const struct profile_pair *pair, bool is_normalized,
                              struct sink *sink);

/* Parts of Go's legacy profile text. */

/* Appends the addresses of the stack, " 0x1 0x2", as many as fit into a line that pprof reads. */
void text_append_addresses(struct buffer *buffer, const struct fgprof_profile *profile,
                           const struct profile_stack *stack);

/* Writes a row "#\tADDRESS\tFUNCTION+OFFSET\tFILE:LINE" for each frame, in columns. */
void text_put_stack(struct sink *sink, const struct fgprof_profile *profile,
                    const struct profile_stack *stack);

#endif
