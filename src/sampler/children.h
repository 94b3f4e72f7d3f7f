/* Follows the descendants of the targets, where that is wanted. */
#ifndef FGPROF_SAMPLER_CHILDREN_H
#define FGPROF_SAMPLER_CHILDREN_H

#include "recorder/recorder.h"

/* Takes in those that are there when the recording starts. Returns 0 or -ENOMEM. */
int children_start(struct fgprof_recorder *recorder);

/* Takes in those that were born since. Returns 0 or -ENOMEM. */
int children_find(struct fgprof_recorder *recorder);

/* Lets go of what is held of those that have exited. */
void children_close_exited(struct fgprof_recorder *recorder);

#endif
