/* For structs of the caller that may be older or newer: see "Compatibility" in fgprof.h. */
#ifndef FGPROF_API_SIZED_H
#define FGPROF_API_SIZED_H

#include <stddef.h>
#include <string.h>

/* Copies what both structs have, and sets the rest of the caller's to zero. */
static inline void sized_copy(void *to, size_t to_bytes, const void *from, size_t from_bytes)
{
    size_t bytes = to_bytes < from_bytes ? to_bytes : from_bytes;
    memcpy(to, from, bytes);
    memset((char *)to + bytes, 0, to_bytes - bytes);
}

/* A later field must not take the place of padding: an older library would copy its padding there
 * instead of zeroes. */
#define SIZED_ENDS_WITH(type, last)                                                                \
    _Static_assert(offsetof(type, last) + sizeof((type){0}.last) == sizeof(type),                  \
                   "no padding at the end of " #type)

#endif
