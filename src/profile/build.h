/* Makes a finished profile from what was counted. Each distinct address is named once. */
#ifndef FGPROF_PROFILE_BUILD_H
#define FGPROF_PROFILE_BUILD_H

#include "profile/name_locations.h"
#include "count/elapsed.h"
#include "count/label_sets.h"
#include "count/objects.h"
#include "count/runtime_frames.h"
#include "count/stack_table.h"
#include "count/waits.h"
#include "mapping/spaces.h"

struct counted {
    const struct stack_table *table;
    const struct waits *waits; /* the table's wait_plus_1 */
    const struct label_sets *label_sets;
    const struct runtime_frames *runtime_frames;
    const struct deadlocks *deadlocks;
    uint64_t begin_ns;               /* CLOCK_MONOTONIC: when the recording began */
    const struct timeline *timeline; /* what was kept of the table's samples; NULL: nothing */
    const struct spaces *spaces;
    const struct strings *strings; /* of the samples' labels */
    const struct elapsed *elapsed; /* of each of the table's processes; NULL: not known, and
                                      `parallelism` is then ignored */
    const struct parallelism *parallelism;
    uint64_t until_ns; /* CLOCK_MONOTONIC: when sampling ended */
};

/* Returns 0 or -ENOMEM. Sets the summary's samples_unnamed; the caller sets the rest of the
 * summary. */
int name_profile(const struct counted *counted, const struct name_sources *sources,
                 struct fgprof_profile **ret_profile);

/* Which objects of a recording. */
struct chosen_objects {
    const struct objects *objects; /* their stacks and processes are in counted.table */
    uint32_t maker_kind;           /* struct object_maker's */
    const char *name;              /* the makers'; NULL: of any */
    bool are_threads;              /* they have the names of the threads that they made */
    const bool *wanted;            /* by the number of a maker: whether its objects are included;
                                      NULL: all */
    bool are_allocations; /* first frames that only allocate for their callers are left out */
};

/* Makes a profile of objects from the tables, spaces and strings of `counted`. The caller sets its
 * kind and objects, and the summary except for cut stacks and frames without a name. Returns 0 or
 * -ENOMEM. */
int name_objects(const struct counted *counted, const struct chosen_objects *chosen,
                 const struct name_sources *sources, struct fgprof_profile **ret_profile);

#endif
