/* Growing arrays: the items, how many there are, and how many fit. */
#ifndef FGPROF_BASE_ARRAY_H
#define FGPROF_BASE_ARRAY_H

#include <stddef.h>

/* Makes room for at least `needed` items in *items, which holds *capacity of `item_bytes` each.
 * At least doubles, so that appending is linear over all. Returns 0 or -ENOMEM, and then nothing
 * has changed. */
int array_reserve(void **items, size_t *capacity, size_t needed, size_t item_bytes);

#endif
