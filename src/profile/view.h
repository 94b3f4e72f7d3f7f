/* Which samples of a profile are written, and which are merged. */
#ifndef FGPROF_PROFILE_VIEW_H
#define FGPROF_PROFILE_VIEW_H

#include "profile/profile.h"

struct profile_view {
    struct profile_sample *samples;
    size_t sample_count;
};

/* The samples that the profile's `kept` keeps, in the profile's order; those that its `threads`
 * does not tell apart are merged, and so are those whose owners only were at different places,
 * unless `tells_places`. Returns 0 or -ENOMEM. */
int profile_view_make(const struct fgprof_profile *profile, bool tells_places,
                      struct profile_view *ret_view);
/* The samples that have part in one of `times` (enum fgprof_times), as servers for continuous
 * profiling take them: merged unless they differ in process, stack or thread, and in whether they
 * ran if `times` tell that. Threads are told apart by nothing unless `tells_threads`. Returns 0 or
 * -ENOMEM. */
int profile_view_make_times(const struct fgprof_profile *profile, unsigned times,
                            bool tells_threads, struct profile_view *ret_view);
void profile_view_free(struct profile_view *view);

/* Removes all samples with this function in their stack: its name is that in the symbol table. In
 * timelines their threads are absent then. Returns 0 or -ENOMEM. */
int profile_leave_out(struct fgprof_profile *profile, const char *function);

#endif
