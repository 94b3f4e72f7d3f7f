#include "wait/object.h"

#include <string.h>

#define WORD_BYTES 8u
/* No allocator puts another allocation so near before one that has a lock of glibc in it: glibc's
 * own are at least 32 bytes apart, and others put those of one size together, at least the 32 bytes
 * of a semaphore. */
#define NEAR_BYTES 24u
/* Of std::make_shared: a vtable pointer and two counts, then the object. */
#define SHARED_COUNTS_BYTES 16u
/* An allocation of glibc's malloc (struct malloc_chunk of its malloc.c): its size is the word
 * before it and counts that word, but not the word before that. */
#define CHUNK_ALIGNMENT 16u
#define CHUNK_MIN_BYTES 32u
#define CHUNK_MAX_BYTES (1u << 20) /* objects with locks are no larger; a pointer would be */
#define CHUNK_FLAGS 7u

/* The words before a futex, that is, those next to it. */
struct before {
    const uint32_t *futex;
    uint64_t address; /* of the futex */
    size_t bytes;
};

static bool read_word(const struct before *before, uint64_t address, uint64_t *ret_word)
{
    uint64_t distance = before->address - address;
    if (distance < WORD_BYTES || distance > before->bytes)
        return false;
    memcpy(ret_word, (const char *)before->futex - distance, WORD_BYTES);
    return true;
}

/* Whether an allocation begins at that address in which the lock is, by what malloc says. */
static bool is_allocation_of(const struct before *before, uint64_t address, uint64_t lock)
{
    uint64_t head;
    if (address % CHUNK_ALIGNMENT || !read_word(before, address - WORD_BYTES, &head))
        return false;
    uint64_t size = head & ~(uint64_t)CHUNK_FLAGS;
    return size % CHUNK_ALIGNMENT == 0 && size >= CHUNK_MIN_BYTES && size <= CHUNK_MAX_BYTES &&
           lock - address < size - WORD_BYTES;
}

size_t object_pointers(const struct lock *lock, const struct lock_site *site,
                       const struct call_target *target, const struct call_memory *memory,
                       uint64_t ret_pointers[OBJECT_POINTERS_MAX])
{
    const struct before before = {
        .futex = &memory->words[FUTEX_WORDS_BEFORE],
        .address = target->address,
        .bytes = call_futex_words_before(target, memory) * sizeof *memory->words,
    };
    uint64_t start = lock->address & ~(uint64_t)(WORD_BYTES - 1), word;
    size_t count = 0;
    for (uint64_t distance = WORD_BYTES; distance <= OBJECT_POINTERS_MAX * WORD_BYTES;
         distance += WORD_BYTES) {
        uint64_t at = start - distance;
        if (!read_word(&before, at, &word))
            break;
        if (!word || word % WORD_BYTES)
            continue;
        if ((site->is_glibc && distance <= NEAR_BYTES) || is_allocation_of(&before, at, start) ||
            is_allocation_of(&before, at - SHARED_COUNTS_BYTES, start))
            ret_pointers[count++] = word;
    }
    return count;
}
