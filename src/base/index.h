/* A hash index: finds the number of an item in a table that the owner keeps.
 *
 * Two columns, hash and item number; open addressing with linear probing. The owner keeps the items
 * in an array, numbered from 0, and says whether item n equals the one sought. */
#ifndef FGPROF_BASE_INDEX_H
#define FGPROF_BASE_INDEX_H

#include "base/array.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INDEX_NONE UINT32_MAX

struct index_slot {
    uint32_t hash;
    uint32_t item_plus_1; /* 0: the slot is free */
};

struct index {
    struct index_slot *slots;
    size_t slot_count; /* a power of two, or 0 */
    size_t used;
};

/* Whether item number `item` of `owner` is the one described by `key`. */
typedef bool index_equal_fn(const void *owner, uint32_t item, const void *key);

/* Returns the number of the item that equals `key`, or INDEX_NONE. */
uint32_t index_find(const struct index *index, uint64_t hash, index_equal_fn *equal,
                    const void *owner, const void *key);

/* Adds an item that is known to be absent. Returns 0 or -ENOMEM. */
int index_add(struct index *index, uint64_t hash, uint32_t item);

/* Adds an item that is known to be absent, and appends it to *items (array_append). Evaluates to 0
 * or -ENOMEM. */
#define INDEX_APPEND(index, hash, items, count, capacity, ...)                                     \
    (array_reserve(items, capacity, *(count) + 1) || index_add(index, hash, (uint32_t) * (count))  \
         ? -ENOMEM                                                                                 \
         : ((*(items))[(*(count))++] = (__VA_ARGS__), 0))

/* Finds the item whose first `key_bytes` bytes, which have no padding, equal those of `item`, or
 * appends `item` to *items, an array of *count items with room for *capacity (base/array.h). Sets
 * *ret_number. Evaluates to 0 or -ENOMEM. The arguments are evaluated more than once. */
#define INDEX_INTERN(index, key_bytes, item, items, count, capacity, ret_number)                   \
    (array_reserve(items, capacity, *(count) + 1)                                                  \
         ? -ENOMEM                                                                                 \
         : index_intern(index, key_bytes, item, *(items), sizeof **(items), count, ret_number))
int index_intern(struct index *index, size_t key_bytes, const void *item, void *items,
                 size_t item_bytes, size_t *count, uint32_t *ret_number);

/* The number of the item that begins with the `key_bytes` bytes of `key`, or INDEX_NONE. */
#define INDEX_FIND(index, key_bytes, key, items)                                                   \
    index_find_key(index, key_bytes, key, items, sizeof *(items))
uint32_t index_find_key(const struct index *index, size_t key_bytes, const void *key,
                        const void *items, size_t item_bytes);

/* Indexes such items again after they have moved; there must be no more than before. */
#define INDEX_AGAIN(index, key_bytes, items, count)                                                \
    index_again(index, key_bytes, items, sizeof *(items), count)
void index_again(struct index *index, size_t key_bytes, const void *items, size_t item_bytes,
                 size_t count);

/* Removes all items, so that `count` others, at most as many as before, can be added without
 * allocating memory. Frees memory if they would use little of it. */
void index_clear(struct index *index, size_t count);

void index_free(struct index *index);

/* Hashes `bytes` bytes, seeded by `seed` so that a key in several parts can be chained. The result
 * also depends on a secret of this program, so that nobody can choose keys with equal hashes. */
uint64_t hash_bytes(const void *data, size_t bytes, uint64_t seed);

/* The same without the secret: equal in all programs. Not for keys that others choose. */
uint64_t hash_bytes_fixed(const void *data, size_t bytes, uint64_t seed);

#endif
