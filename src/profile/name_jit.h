/* Names of code that the process generated, as the process itself reported them. */
#ifndef FGPROF_PROFILE_NAME_JIT_H
#define FGPROF_PROFILE_NAME_JIT_H

#include "profile/profile.h"
#include "mapping/space.h"

/* Adds the location of an address that space->jit names. Returns 0 or -ENOMEM. */
int name_jit_location(struct fgprof_profile *profile, enum fgprof_names names,
                      const struct space *space, const struct mapping *mapping, uint64_t address,
                      uint32_t *ret_location);

#endif
