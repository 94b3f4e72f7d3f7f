#include "agent/ring.h"
#include "agent/process.h"

#include <string.h>
#include <time.h>

/* The minimum of an AGENT_PADDING record: the fields within 16 bytes, which every rest of the ring
 * has. */
#define PADDING_BYTES 16u

_Static_assert(offsetof(struct agent_record, tid) == PADDING_BYTES, "padding fits");
_Static_assert(sizeof(struct agent_record) % 16 == 0, "positions are multiples of 16");

static struct agent_record *record_at(struct agent_header *header, uint64_t position)
{
    char *ring = (char *)header + AGENT_HEADER_BYTES;
    return (struct agent_record *)(void *)(ring + position % AGENT_RING_BYTES);
}

void ring_count_lost(struct agent_header *header, enum agent_record_kind kind)
{
    _Atomic uint64_t *count = kind == AGENT_ALLOCATED ? &header->made_lost
                              : kind == AGENT_FREED   ? &header->gone_lost
                                                      : &header->threads_lost;
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

uint64_t ring_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The reader may have been killed: then nobody else would ever turn the agent off.
 *
 * Other threads do the same meanwhile. `full_read` is stored last and loaded first, so that a
 * thread that finds how far the ring was read does not find a time from before that. It may find a
 * time that is later than its own. */
static void note_full(struct agent_header *header, uint64_t read)
{
    struct process *own = process;
    uint64_t now_ns = ring_now_ns();
    uint64_t full_read = atomic_load_explicit(&own->full_read, memory_order_acquire);
    uint64_t since_ns = atomic_load_explicit(&own->full_since_ns, memory_order_relaxed);
    if (!since_ns || full_read != read) {
        atomic_store_explicit(&own->full_since_ns, now_ns, memory_order_relaxed);
        atomic_store_explicit(&own->full_read, read, memory_order_release);
    } else if (now_ns > since_ns + RING_PATIENCE_NS) {
        atomic_store_explicit(&header->wanted, 0, memory_order_relaxed);
        atomic_store_explicit(&own->full_since_ns, 0, memory_order_relaxed);
    }
}

static void put_padding(struct agent_header *header, uint64_t position, uint64_t bytes)
{
    struct agent_record *record = record_at(header, position);
    record->bytes = (uint32_t)bytes;
    record->kind = AGENT_PADDING;
    atomic_store_explicit(&record->committed, position + 1, memory_order_release);
}

/* Raises `written` by the bytes, and by the rest of the ring if they do not fit there. Sets where
 * they begin, and how much padding comes before them. Returns false if there is no room. */
static bool take_bytes(struct agent_header *header, enum agent_record_kind kind, uint64_t bytes,
                       uint64_t *ret_position, uint64_t *ret_padding)
{
    uint64_t room = AGENT_RING_BYTES - (kind == AGENT_FREED ? 0 : RING_RESERVE_BYTES);
    uint64_t position = atomic_load_explicit(&header->written, memory_order_relaxed);
    for (;;) {
        uint64_t left = AGENT_RING_BYTES - position % AGENT_RING_BYTES;
        uint64_t padding = left < bytes ? left : 0, end = position + padding + bytes;
        /* Before the ring's memory is used again, the reader is done with it. */
        uint64_t read = atomic_load_explicit(&header->read, memory_order_acquire);
        if (end - read > room) {
            /* Or the position is an old one, and the reader has passed it. */
            uint64_t newer = atomic_load_explicit(&header->written, memory_order_relaxed);
            if (newer == position) {
                note_full(header, read);
                return false;
            }
            position = newer;
        } else if (atomic_compare_exchange_weak(&header->written, &position, end)) {
            *ret_position = position + padding;
            *ret_padding = padding;
            return true;
        }
    }
}

bool ring_reserve(struct agent_header *header, enum agent_record_kind kind, size_t bytes,
                  struct ring_place *ret_place)
{
    uint64_t record_bytes = (sizeof(struct agent_record) + bytes + 15) & ~(uint64_t)15;
    uint64_t position, padding;
    if (!take_bytes(header, kind, record_bytes, &position, &padding)) {
        ring_count_lost(header, kind);
        return false;
    }
    if (padding)
        put_padding(header, position - padding, padding);
    struct agent_record *record = record_at(header, position);
    memset(&record->bytes, 0, sizeof *record - offsetof(struct agent_record, bytes));
    record->bytes = (uint32_t)record_bytes;
    record->kind = (uint16_t)kind;
    *ret_place = (struct ring_place){.record = record, .position = position};
    return true;
}

void ring_commit(const struct ring_place *place)
{
    atomic_store_explicit(&place->record->committed, place->position + 1, memory_order_release);
}

void ring_give_up(struct agent_header *header, const struct ring_place *place)
{
    ring_count_lost(header, place->record->kind);
    place->record->kind = AGENT_PADDING;
    ring_commit(place);
}
