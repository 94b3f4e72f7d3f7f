/* From what was counted to a finished profile: each distinct address is named once. */
#ifndef FGPROF_PROFILE_BUILD_H
#define FGPROF_PROFILE_BUILD_H

#include "profile/name_locations.h"
#include "count/stack_table.h"
#include "mapping/spaces.h"

struct counted {
    const struct stack_table *table;
    const struct timeline *timeline; /* what was kept of the table's samples; NULL: none was */
    const struct spaces *spaces;
    const struct strings *strings; /* of the labels */
};

/* Returns 0 or -ENOMEM. The summary's samples_unnamed is set, the rest of it is the caller's. */
int name_profile(const struct counted *counted, const struct name_sources *sources,
                 struct fgprof_profile **ret_profile);

#endif
