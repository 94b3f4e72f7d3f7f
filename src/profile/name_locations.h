/* The names of a profile's locations in mapped files. */
#ifndef FGPROF_PROFILE_NAME_LOCATIONS_H
#define FGPROF_PROFILE_NAME_LOCATIONS_H

#include "profile/profile.h"
#include "elf/module.h"
#include "symbol/debug_fetch.h"
#include "symbol/names/cache.h"

/* How names are looked up. */
struct name_sources {
    enum fgprof_names names;
    struct debug_fetch *fetch; /* see symbols_open */
    /* What it has need not be looked up, what it has not is added; and the modules may be in use
     * by another thread meanwhile. NULL: there is none, and they may not. */
    struct name_cache *cache;
};

/* A location whose name is still to be found. */
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

/* Names them, and notes in the profile which modules could not be read. They are sorted. Returns 0
 * or -ENOMEM. */
int name_locations(struct fgprof_profile *profile, struct unnamed *unnamed,
                   const struct name_sources *sources);

#endif
