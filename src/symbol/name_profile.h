/* From what was counted to a finished profile: each distinct address is named once. */
#ifndef FGPROF_SYMBOL_NAME_PROFILE_H
#define FGPROF_SYMBOL_NAME_PROFILE_H

#include "module/spaces.h"
#include "profile/stack_table.h"
#include "symbol/name_locations.h"

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
