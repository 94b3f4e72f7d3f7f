#include "agent/live.h"
#include "agent/pages.h"
#include "base/random.h"

void live_init(struct live *live, void *memory)
{
    live->filter = memory;
    atomic_store(&live->tables[0],
                 (struct live_bucket *)(void *)((char *)memory + LIVE_FILTER_BYTES));
    for (unsigned i = 1; i < LIVE_TABLES; i++)
        atomic_store(&live->tables[i], NULL);
}

static size_t table_bytes(unsigned number)
{
    return ((size_t)LIVE_BUCKETS << number) * sizeof(struct live_bucket);
}

/* A byte that has once been full stays so: what else it counts is not known. */
static void filter_add(struct live *live, uint64_t address)
{
    _Atomic uint8_t *byte = &live->filter[live_filter_place(address)];
    uint8_t count = atomic_load_explicit(byte, memory_order_relaxed);
    while (count != UINT8_MAX && !atomic_compare_exchange_weak(byte, &count, count + 1)) {
    }
}

static void filter_remove(struct live *live, uint64_t address)
{
    _Atomic uint8_t *byte = &live->filter[live_filter_place(address)];
    uint8_t count = atomic_load_explicit(byte, memory_order_relaxed);
    while (count != UINT8_MAX && count != 0 &&
           !atomic_compare_exchange_weak(byte, &count, count - 1)) {
    }
}

/* The table; if there is none yet, it is made if `make`. NULL: none. */
static struct live_bucket *table_of(struct live *live, unsigned number, bool make)
{
    struct live_bucket *table = atomic_load_explicit(&live->tables[number], memory_order_acquire);
    if (table || !make)
        return table;
    struct live_bucket *made = pages_new(table_bytes(number));
    if (!made)
        return NULL;
    if (atomic_compare_exchange_strong(&live->tables[number], &table, made))
        return made;
    pages_free(made, table_bytes(number)); /* another thread was first */
    return table;
}

static struct live_bucket *bucket_of(struct live_bucket *table, unsigned number, uint64_t address)
{
    return &table[random_number(address, 0) % ((uint64_t)LIVE_BUCKETS << number)];
}

/* Replaces `from` by `to` in a slot of the bucket. */
static bool replace(struct live_bucket *bucket, uint64_t from, uint64_t to)
{
    for (unsigned i = 0; i < LIVE_BUCKET_SLOTS; i++) {
        uint64_t expected = from;
        if (atomic_load_explicit(&bucket->slots[i], memory_order_relaxed) == from &&
            atomic_compare_exchange_strong(&bucket->slots[i], &expected, to))
            return true;
    }
    return false;
}

bool live_add(struct live *live, uint64_t address)
{
    /* First, so that the filter never misses what is in a slot. */
    filter_add(live, address);
    for (unsigned i = 0; i < LIVE_TABLES; i++) {
        struct live_bucket *table = table_of(live, i, true);
        if (!table)
            break;
        if (replace(bucket_of(table, i, address), 0, address))
            return true;
    }
    filter_remove(live, address);
    return false;
}

bool live_remove(struct live *live, uint64_t address)
{
    struct live_bucket *table;
    if (!address)
        return false; /* it stands for an empty slot */
    for (unsigned i = 0; i < LIVE_TABLES && (table = table_of(live, i, false)); i++) {
        if (replace(bucket_of(table, i, address), address, 0)) {
            filter_remove(live, address);
            return true;
        }
    }
    return false;
}

uint64_t live_clear(struct live *live)
{
    struct live_bucket *table;
    uint64_t removed = 0;
    for (unsigned i = 0; i < LIVE_TABLES && (table = table_of(live, i, false)); i++) {
        for (size_t n = 0; n < table_bytes(i) / sizeof(uint64_t); n++) {
            _Atomic uint64_t *slot = &table[n / LIVE_BUCKET_SLOTS].slots[n % LIVE_BUCKET_SLOTS];
            if (!atomic_load_explicit(slot, memory_order_relaxed))
                continue;
            uint64_t address = atomic_exchange(slot, 0);
            if (address) {
                filter_remove(live, address);
                removed++;
            }
        }
    }
    return removed;
}
