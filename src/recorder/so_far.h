/* A recording's content while it goes on: a copy that the sampling thread makes between rounds, for
 * another thread to name. So nothing that samples go into needs a lock, and who names, however long
 * that takes, holds up no tick. */
#ifndef FGPROF_RECORDER_SO_FAR_H
#define FGPROF_RECORDER_SO_FAR_H

#include "sampler/recording.h"

struct so_far {
    struct recording recording; /* its tables, without what is needed to add to them, and counts */
};

/* Brings the copy up to date. What was copied before is there still, so that only what is new
 * costs time: stacks and strings are never taken away. Returns 0 or -ENOMEM. */
int so_far_update(struct so_far *so_far, const struct recording *recording);
void so_far_free(struct so_far *so_far);

#endif
