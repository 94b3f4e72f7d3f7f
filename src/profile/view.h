/* Selects and merges the samples that are written. */
#ifndef FGPROF_PROFILE_VIEW_H
#define FGPROF_PROFILE_VIEW_H

#include "profile/profile.h"

struct profile_view {
    struct profile_sample *samples;
    size_t sample_count;
    uint32_t *numbers; /* by sample of the profile: its number here, or PROFILE_NO_SAMPLE. NULL if
                          the view was made for certain times */
};

/* Makes a view of the samples that the profile's `kept` selects, in the profile's order. Merges
 * samples of threads that its `threads` does not distinguish, and, unless `tells_places`, samples
 * that differ only in where their owners were. Returns 0 or -ENOMEM. */
int profile_view_make(const struct fgprof_profile *profile, bool tells_places,
                      struct profile_view *ret_view);
/* Makes a view for servers of continuous profiling: the samples with any of `times` (enum
 * fgprof_times), merged unless they differ in process, stack, thread, or, if `times` distinguishes
 * it, in whether they ran. Threads are distinguished only if `tells_threads`. A goroutine's id is
 * in `goroutine`, and `tid` is only a thread's. Returns 0 or -ENOMEM. */
int profile_view_make_times(const struct fgprof_profile *profile, unsigned times,
                            bool tells_threads, struct profile_view *ret_view);
void profile_view_free(struct profile_view *view);

#endif
