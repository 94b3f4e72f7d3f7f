/* Which allocations are sampled, and what is reported of them to the reader.
 *
 * The order that the reader sees: an object is added to the live set before its record is appended,
 * and both before malloc returns, so nobody can have freed it yet. A free removes the object from
 * the set, appends its record, and only then gives the memory back: no other thread can have it
 * before that. If the record of an allocation is dropped, the object is not in the set, and its
 * free is not reported.
 *
 * A new epoch empties the set. At that time a thread may be between adding an object and appending
 * its record. So after it took its place in the ring, it reads the epoch again: if that has
 * changed, it drops the record. If it has not, the reader, which raises the epoch before it reads
 * `written`, sees that the place is below `written`, and so that the record belongs to the epoch
 * before. */
#ifndef FGPROF_AGENT_OBJECTS_H
#define FGPROF_AGENT_OBJECTS_H

#include "agent/live.h"
#include "agent/process.h"
#include "agent/this_thread.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns false if there is no memory. */
bool objects_init(void);

/* Nothing is known of any thread's next sample: in a child of fork. */
void objects_forget_thread(void);

/* Counts bytes that the thread is about to allocate, if that is `wanted`. Returns true, and has not
 * counted them, if the caller must pass them to object_made or mapping_made. */
static inline bool object_is_due(size_t bytes, uint32_t wanted)
{
    struct agent_header *header = atomic_load_explicit(&process->header, memory_order_relaxed);
    if (__builtin_expect(!header, 0) ||
        !(atomic_load_explicit(&header->wanted, memory_order_relaxed) & wanted))
        return false;
    if (__builtin_expect(bytes > (uint64_t)this_thread.bytes_left, 0) ||
        __builtin_expect(
            this_thread.rate != atomic_load_explicit(&header->rate, memory_order_relaxed), 0))
        return true;
    this_thread.bytes_left -= (int64_t)bytes;
    return false;
}

/* The object was allocated with this many bytes. Like the functions below, does not change errno.
 */
void object_made(const void *object, size_t bytes);

/* The set of objects from the allocator that are alive. */
extern struct live objects_live;

bool object_gone_maybe(const void *object);

/* The object is going to be freed. Returns whether it was a sampled one. */
static inline bool object_gone(const void *object)
{
    if (__builtin_expect(!atomic_load_explicit(&process->live, memory_order_relaxed), 1) ||
        __builtin_expect(!live_may_have(&objects_live, (uintptr_t)object), 1))
        return false;
    return object_gone_maybe(object);
}

/* The object is not freed after all, although object_gone returned true. */
void object_stays(const void *object, size_t bytes);

/* The same for memory that was mapped, and for a range that is going to be unmapped. */
void mapping_made(const void *memory, size_t bytes);
bool mappings_gone_maybe(const void *memory, size_t bytes);
void mapping_stays(const void *memory, size_t bytes);

static inline bool mappings_gone(const void *memory, size_t bytes)
{
    return atomic_load_explicit(&process->live_mappings, memory_order_relaxed) &&
           mappings_gone_maybe(memory, bytes);
}

#endif
