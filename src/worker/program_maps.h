/* What the worker knows of a program's mappings: the code, and where stacks end. */
#ifndef FGPROF_WORKER_PROGRAM_MAPS_H
#define FGPROF_WORKER_PROGRAM_MAPS_H

#include "base/throttle.h"
#include "mapping/spaces.h"
#include "observe/observation.h"
#include "proc/stack_areas.h"
#include "worker/results.h"

/* Zeroed at first. */
struct program_maps {
    struct space *space; /* NULL: the maps have not been read yet, or can't be */
    bool is_gone;        /* the program ended before its maps were read */
    struct throttle reading;
    int kept_fd;              /* the last maps that were read when the program had ended; 0: none */
    uint64_t replaced_ns;     /* when other code was last found where some had been; 0: never */
    bool replaced_is_told;    /* reported to the sampling thread */
    unsigned spare_readings;  /* readings of a new program's maps beyond one a round */
    struct stack_areas areas; /* empty until they are needed, with the program's memory */
    struct throttle areas_reading;
    bool areas_are_sent; /* the sampling thread has them */
};

/* These functions return 0 or -ENOMEM. */

/* Sets or refreshes maps->space, if the program's maps can be read. */
int program_maps_update(struct program_maps *maps, struct results *results,
                        const struct observation *observation);

/* Reads the maps again, at most once a round, and a few times more for a new program.
 * *ret_changed: something was new. */
int program_maps_refresh(struct program_maps *maps, struct results *results,
                         const struct observation *observation, bool *ret_changed);

/* Reads again where mappings end, at most once a round, and as rarely as keeps the cost low. */
int program_maps_read_areas(struct program_maps *maps, const struct observation *observation);

#endif
