/* The names of a profile's locations: those in mapped files, and those in code that the process
 * generated, as the process itself reported them. */
#ifndef FGPROF_PROFILE_NAME_LOCATIONS_H
#define FGPROF_PROFILE_NAME_LOCATIONS_H

#include "profile/profile.h"
#include "mapping/space.h"
#include "symbol/debug_fetch.h"
#include "symbol/names/cache.h"

/* How names are looked up. */
struct name_sources {
    enum fgprof_names names;
    struct debug_fetch *fetch; /* see symbols_open */
    /* Addresses that it has are not looked up, others are added; and another thread may be using
     * the modules meanwhile. NULL: there is no cache, and no other thread is. */
    struct name_cache *cache;
};

/* A location that still needs its name. */
struct unnamed_location {
    struct module *module;
    uint64_t address; /* the module's own */
    uint32_t location;
};

struct unnamed {
    struct unnamed_location *items;
    size_t count, capacity;
};

/* Returns 0 or -ENOMEM. */
int unnamed_add(struct unnamed *unnamed, struct module *module, uint64_t address,
                uint32_t location);
void unnamed_free(struct unnamed *unnamed);

/* Names the locations, and notes in the profile which modules could not be read. Sorts the
 * locations. Returns 0 or -ENOMEM. */
int name_locations(struct fgprof_profile *profile, struct unnamed *unnamed,
                   const struct name_sources *sources);

/* Adds the location of an address that space->jit names. Returns 0 or -ENOMEM. */
int name_jit_location(struct fgprof_profile *profile, enum fgprof_names names,
                      const struct space *space, const struct mapping *mapping, uint64_t address,
                      uint32_t *ret_location);

#endif
