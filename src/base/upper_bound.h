/* Binary search in a table that is sorted by one of its columns. */
#ifndef FGPROF_BASE_UPPER_BOUND_H
#define FGPROF_BASE_UPPER_BOUND_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t sorted_key(const void *at, size_t key_bytes)
{
    return key_bytes == 8 ? *(const uint64_t *)at : *(const uint32_t *)at;
}

/* The index of the first of `count` items whose key is greater than `value`, or `count`. The item
 * before it, if any, is the last whose key is at most `value`. The keys ascend; each has 4 or 8
 * bytes and is `key_offset` bytes into its item of `item_bytes`. Inlined because callers pass
 * constants. */
static inline size_t upper_bound(const void *items, size_t count, size_t item_bytes,
                                 size_t key_offset, size_t key_bytes, uint64_t value)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const void *at = (const char *)items + middle * item_bytes + key_offset;
        if (sorted_key(at, key_bytes) <= value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The last item whose key is `value`, or NULL. The arguments are the same. */
static inline void *find_sorted(const void *items, size_t count, size_t item_bytes,
                                size_t key_offset, size_t key_bytes, uint64_t value)
{
    size_t after = upper_bound(items, count, item_bytes, key_offset, key_bytes, value);
    if (!after)
        return NULL;
    const char *last = (const char *)items + (after - 1) * item_bytes;
    return sorted_key(last + key_offset, key_bytes) == value ? (void *)(uintptr_t)last : NULL;
}

/* Both by the member that the items are sorted by, which must be a uint64_t or a uint32_t. */
#define SORTED_BY(items, member)                                                                   \
    sizeof *(items), offsetof(__typeof__(*(items)), member),                                       \
        _Generic((items)->member, uint64_t : 8, uint32_t : 4)
#define UPPER_BOUND(items, count, member, value)                                                   \
    upper_bound(items, count, SORTED_BY(items, member), value)
#define FIND_SORTED(items, count, member, value)                                                   \
    find_sorted(items, count, SORTED_BY(items, member), value)

#endif
