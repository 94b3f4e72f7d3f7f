/* Names the locations of a profile, in mapped files and in generated code. */
#ifndef FGPROF_PROFILE_NAME_LOCATIONS_H
#define FGPROF_PROFILE_NAME_LOCATIONS_H

#include "profile/profile.h"
#include "mapping/space.h"
#include "reader/reader.h"
#include "symbol/names/cache.h"

struct name_sources {
    enum fgprof_names names;
    struct debug_fetch *fetch; /* see reader.h */
    struct reader *reader;
    struct name_cache *cache; /* addresses in it are not looked up again; NULL: there is none */
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

/* Names the locations and adds unreadable modules to the profile. Sorts the locations. Returns 0 or
 * -ENOMEM. */
int name_locations(struct fgprof_profile *profile, struct unnamed *unnamed,
                   const struct name_sources *sources);

/* Adds a location in generated code. Returns 0 or -ENOMEM. */
int name_jit_location(struct fgprof_profile *profile, const struct name_sources *sources,
                      const struct space *space, const struct mapping *mapping, uint64_t address,
                      uint32_t *ret_location);

#endif
