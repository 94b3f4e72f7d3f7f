/* Checks whether a space is still right. Which files are mapped is known from maps, which takes too
 * long to read for every sample, and a library may be unloaded and another loaded in its place. */
#ifndef FGPROF_MAPPING_SPACE_CHECK_H
#define FGPROF_MAPPING_SPACE_CHECK_H

#include "mapping/space.h"

/* Whether the memory of thread `tid` differs from the first page of a file that, according to the
 * space, holds one of the addresses. Each file is looked at once for all calls with the same
 * `round_ns`. */
bool space_is_replaced(struct space *space, pid_t tid, const uint64_t *addresses, size_t count,
                       uint64_t round_ns);

#endif
