/* What Go's legacy text has for profiles of memory in place of counts; and a map for all readers of
 * profiles of objects. */
#ifndef FGPROF_OUTPUT_MEMORY_TEXT_H
#define FGPROF_OUTPUT_MEMORY_TEXT_H

#include "base/sink.h"
#include "profile/view.h"

/* Whether the profile's text is that of memory: of allocations, or of pages. */
bool memory_text_is_for(const struct fgprof_profile *profile);

/* The first line. */
void memory_text_head(struct sink *sink, const struct fgprof_profile *profile,
                      const struct profile_view *view);
/* What a stack's line has before its addresses. */
void memory_text_values(struct sink *sink, const struct profile_sample *sample);
/* What is known of the process's memory, as comments. */
void memory_text_comments(struct sink *sink, const struct fgprof_profile *profile);
/* Where files were mapped; readers expect nothing after that. */
void memory_text_map(struct sink *sink, const struct fgprof_profile *profile);

#endif
