/* Finds in timelines how long threads did the same thing without interruption. */
#ifndef FGPROF_PROFILE_SPANS_H
#define FGPROF_PROFILE_SPANS_H

#include "profile/profile.h"

/* As fgprof_profile_spans. The caller frees the rows; their strings are the profile's. */
int profile_spans(const struct fgprof_profile *profile, const struct fgprof_span_query *query,
                  struct fgprof_span **ret_rows, size_t *ret_count);

#endif
