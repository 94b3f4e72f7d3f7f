/* Growing arrays: the items, how many there are, and how many fit. */
#ifndef FGPROF_BASE_ARRAY_H
#define FGPROF_BASE_ARRAY_H

#include <errno.h>
#include <stddef.h>

/* Makes room for at least `needed` items at `items`, where *capacity of `item_bytes` each fit. At
 * least doubles, so that appending is linear over all. Returns where the items are then, and sets
 * *capacity; without memory nothing changes, so that *capacity is less than `needed`. */
void *array_grow(void *items, size_t *capacity, size_t needed, size_t item_bytes);

/* The same for *items, a pointer of the items' own type. Yields 0 or -ENOMEM, and then nothing has
 * changed. The arguments are evaluated more than once. */
#define array_reserve(items, capacity, needed)                                                     \
    (*(items) = array_grow(*(items), (capacity), (needed), sizeof **(items)),                      \
     *(capacity) >= (needed) ? 0 : -ENOMEM)

#endif
