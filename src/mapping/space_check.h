/* Whether a space is still right: what files are mapped is known from maps, which takes too long to
 * be read for every sample, and a library may be unloaded and another loaded in its place. */
#ifndef FGPROF_MAPPING_SPACE_CHECK_H
#define FGPROF_MAPPING_SPACE_CHECK_H

#include "mapping/space.h"

/* Whether the memory of thread `tid` begins with the bytes of another file, where the space has the
 * files that hold the addresses. Each file is looked at once for all calls with the same
 * `round_ns`.
 */
bool space_is_replaced(struct space *space, pid_t tid, const uint64_t *addresses, size_t count,
                       uint64_t round_ns);

#endif
