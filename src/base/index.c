#include "base/index.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define SLOTS_FIRST 64
#define SHRINKS_BY 4 /* less is not worth it */

/* The finalizer of MurmurHash3 (Austin Appleby, public domain): every input bit reaches every
 * output bit. */
static uint64_t mix(uint64_t h)
{
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdull;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ull;
    h ^= h >> 33;
    return h;
}

uint64_t hash_bytes_fixed(const void *data, size_t bytes, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = seed ^ (bytes * 0x9e3779b97f4a7c15ull);
    uint64_t word;
    for (; bytes >= sizeof word; p += sizeof word, bytes -= sizeof word) {
        memcpy(&word, p, sizeof word);
        h = mix(h ^ word);
    }
    word = 0;
    if (bytes)
        memcpy(&word, p, bytes);
    return mix(h ^ word);
}

/* From the kernel, which gives each program that is executed 16 random bytes (getauxval(3)). */
static uint64_t secret(void)
{
    static _Atomic uint64_t known; /* 0: not yet */
    uint64_t value = atomic_load_explicit(&known, memory_order_relaxed);
    if (!value) {
        memcpy(&value, (const void *)getauxval(AT_RANDOM), sizeof value);
        value |= 1;
        atomic_store_explicit(&known, value, memory_order_relaxed);
    }
    return value;
}

uint64_t hash_bytes(const void *data, size_t bytes, uint64_t seed)
{
    return hash_bytes_fixed(data, bytes, seed ^ secret());
}

uint32_t index_find(const struct index *index, uint64_t hash, index_equal_fn *equal,
                    const void *owner, const void *key)
{
    if (!index->slot_count)
        return INDEX_NONE;
    size_t mask = index->slot_count - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        const struct index_slot *slot = &index->slots[i];
        if (!slot->item_plus_1)
            return INDEX_NONE;
        if (slot->hash == (uint32_t)hash && equal(owner, slot->item_plus_1 - 1, key))
            return slot->item_plus_1 - 1;
    }
}

static void put(struct index_slot *slots, size_t slot_count, struct index_slot item)
{
    size_t mask = slot_count - 1;
    size_t i = item.hash & mask;
    while (slots[i].item_plus_1)
        i = (i + 1) & mask;
    slots[i] = item;
}

static int grow(struct index *index)
{
    /* Only 32 bits of the hash are kept, so a table is never larger than they can spread. */
    size_t slot_count = index->slot_count ? index->slot_count * 2 : SLOTS_FIRST;
    struct index_slot *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    for (size_t i = 0; i < index->slot_count; i++) {
        if (index->slots[i].item_plus_1)
            put(slots, slot_count, index->slots[i]);
    }
    free(index->slots);
    index->slots = slots;
    index->slot_count = slot_count;
    return 0;
}

int index_add(struct index *index, uint64_t hash, uint32_t item)
{
    if ((index->used + 1) * 4 > index->slot_count * 3) {
        int err = grow(index);
        if (err)
            return err;
    }
    put(index->slots, index->slot_count, (struct index_slot){(uint32_t)hash, item + 1});
    index->used++;
    return 0;
}

struct keyed_items {
    const unsigned char *items;
    size_t item_bytes, key_bytes;
};

static bool has_key(const void *owner, uint32_t item, const void *key)
{
    const struct keyed_items *keyed = owner;
    return memcmp(keyed->items + item * keyed->item_bytes, key, keyed->key_bytes) == 0;
}

uint32_t index_find_key(const struct index *index, size_t key_bytes, const void *key,
                        const void *items, size_t item_bytes)
{
    const struct keyed_items keyed = {items, item_bytes, key_bytes};
    return index_find(index, hash_bytes(key, key_bytes, 0), has_key, &keyed, key);
}

int index_intern(struct index *index, size_t key_bytes, const void *item, void *items,
                 size_t item_bytes, size_t *count, uint32_t *ret_number)
{
    const struct keyed_items keyed = {items, item_bytes, key_bytes};
    uint64_t hash = hash_bytes(item, key_bytes, 0);
    *ret_number = index_find(index, hash, has_key, &keyed, item);
    if (*ret_number != INDEX_NONE)
        return 0;
    if (index_add(index, hash, (uint32_t)*count))
        return -ENOMEM;
    *ret_number = (uint32_t)*count;
    memcpy((unsigned char *)items + *count * item_bytes, item, item_bytes);
    ++*count;
    return 0;
}

void index_clear(struct index *index, size_t count)
{
    size_t slot_count = SLOTS_FIRST;
    while (count * 4 > slot_count * 3)
        slot_count *= 2;
    if (slot_count * SHRINKS_BY < index->slot_count) {
        struct index_slot *slots = malloc(slot_count * sizeof *slots);
        if (slots) {
            free(index->slots);
            index->slots = slots;
            index->slot_count = slot_count;
        }
    }
    if (index->slot_count)
        memset(index->slots, 0, index->slot_count * sizeof *index->slots);
    index->used = 0;
}

void index_again(struct index *index, size_t key_bytes, const void *items, size_t item_bytes,
                 size_t count)
{
    index_clear(index, count);
    for (size_t i = 0; i < count; i++)
        index_add(index, hash_bytes((const char *)items + i * item_bytes, key_bytes, 0),
                  (uint32_t)i);
}

void index_free(struct index *index)
{
    free(index->slots);
    *index = (struct index){0};
}
