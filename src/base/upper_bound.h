/* Binary search in a table that is sorted by one of its columns. */
#ifndef FGPROF_BASE_UPPER_BOUND_H
#define FGPROF_BASE_UPPER_BOUND_H

#include <stddef.h>
#include <stdint.h>

/* The index of the first of `count` items whose key is larger than `value`, or `count`. The item
 * before it, if there is one, is the last whose key is at most `value`. The keys ascend; each is
 * `key_offset` bytes into its item of `item_bytes`, and has 4 or 8 bytes. Inlined because callers
 * know these numbers. */
static inline size_t upper_bound(const void *items, size_t count, size_t item_bytes,
                                 size_t key_offset, size_t key_bytes, uint64_t value)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const void *at = (const char *)items + middle * item_bytes + key_offset;
        uint64_t key = key_bytes == 8 ? *(const uint64_t *)at : *(const uint32_t *)at;
        if (key <= value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The same by the member that the items are sorted by, which must be a uint64_t or a uint32_t. */
#define UPPER_BOUND(items, count, member, value)                                                   \
    upper_bound(items, count, sizeof *(items), offsetof(__typeof__(*(items)), member),             \
                _Generic((items)->member, uint64_t : 8, uint32_t : 4), value)

#endif
