/* The addresses of sampled objects that are live. Each free in the program asks whether its object
 * is among them, and almost never is: reading one byte shows that.
 *
 * Data: the filter, a byte for each of many groups of addresses, which counts the addresses kept in
 * its group; and tables of buckets of 8 addresses, one cache line each. An address has one bucket
 * in each table. It is in the first table that had a free slot when it was added, and each table
 * has twice the buckets of the one before it. So nothing ever moves, an address is added and
 * removed by one compare-and-swap of its slot, and no thread waits.
 *
 * The memory is zeroed in a child of fork, so the set is empty there. */
#ifndef FGPROF_AGENT_LIVE_H
#define FGPROF_AGENT_LIVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_FILTER_BYTES (128u << 10) /* a power of two */
#define LIVE_BUCKET_SLOTS 8u
#define LIVE_BUCKETS 512u /* of the first table */
#define LIVE_TABLES 24u

struct live_bucket {
    _Alignas(64) _Atomic uint64_t slots[LIVE_BUCKET_SLOTS]; /* 0: free */
};

struct live {
    _Atomic uint8_t *filter;
    _Atomic(struct live_bucket *) tables[LIVE_TABLES]; /* NULL: not needed yet, and no later one */
};

/* What the filter and the first table take. */
#define LIVE_FIRST_BYTES (LIVE_FILTER_BYTES + LIVE_BUCKETS * sizeof(struct live_bucket))

/* Makes an empty set in `memory`: LIVE_FIRST_BYTES of zeroes, aligned to 64 bytes. */
void live_init(struct live *live, void *memory);

/* Where the filter counts an address. Objects near each other share a cache line of the filter. The
 * bits above 2 MiB are mixed in: otherwise large objects, which begin at the same offset in their
 * pages, would share few bytes. */
static inline size_t live_filter_place(uint64_t address)
{
    return (size_t)((address >> 4) + (address >> 21) * 0x9e3779b1u) % LIVE_FILTER_BYTES;
}

/* Whether the address may be in the set. */
static inline bool live_may_have(const struct live *live, uint64_t address)
{
    return atomic_load_explicit(&live->filter[live_filter_place(address)], memory_order_relaxed);
}

/* Adds an address, which is not 0 and not in the set. Returns false if there is no memory. */
bool live_add(struct live *live, uint64_t address);

/* Removes an address. Returns false if it was not there. */
bool live_remove(struct live *live, uint64_t address);

/* Removes all addresses, and returns how many there were. Other threads may add and remove
 * meanwhile. */
uint64_t live_clear(struct live *live);

#endif
