/* Allocations that fail. */
#include "site.h"

#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EARLY_BYTES 65536

/* Serves allocations while the next functions are looked up. Never freed. */
static alignas(max_align_t) char early[EARLY_BYTES];
static size_t early_bytes;

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static int (*next_posix_memalign)(void **, size_t, size_t);
static void *(*next_aligned_alloc)(size_t, size_t);
static void (*next_free)(void *);
static enum { NOT_LOOKED_UP, LOOKING_UP, LOOKED_UP } stage;

void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *memory, size_t bytes);
void free(void *memory);

static bool is_early(const void *memory)
{
    return (uintptr_t)memory >= (uintptr_t)early &&
           (uintptr_t)memory < (uintptr_t)early + sizeof early;
}

static void *allocate_early(size_t bytes)
{
    size_t rounded =
        (bytes + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
    if (rounded > sizeof early - early_bytes)
        abort();
    void *memory = early + early_bytes;
    early_bytes += rounded;
    return memory;
}

/* Whether the next functions can be called. The first call comes from the dynamic linker, before
 * there are threads. */
static bool are_looked_up(void)
{
    if (stage == NOT_LOOKED_UP) {
        stage = LOOKING_UP;
        *(void **)&next_malloc = next_function("malloc");
        *(void **)&next_calloc = next_function("calloc");
        *(void **)&next_realloc = next_function("realloc");
        *(void **)&next_posix_memalign = next_function("posix_memalign");
        *(void **)&next_aligned_alloc = next_function("aligned_alloc");
        *(void **)&next_free = next_function("free");
        stage = LOOKED_UP;
    }
    return stage == LOOKED_UP;
}

void *malloc(size_t bytes)
{
    if (!are_looked_up())
        return allocate_early(bytes);
    return fault_is_due("malloc") ? NULL : next_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    if (!are_looked_up()) /* this memory is still zero */
        return allocate_early(count * bytes);
    return fault_is_due("malloc") ? NULL : next_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    if (!are_looked_up() || is_early(memory)) {
        void *moved = malloc(bytes);
        if (moved && memory) {
            size_t left = (size_t)(early + sizeof early - (char *)memory);
            memcpy(moved, memory, bytes < left ? bytes : left);
        }
        return moved;
    }
    return fault_is_due("malloc") ? NULL : next_realloc(memory, bytes);
}

int posix_memalign(void **ret_memory, size_t alignment, size_t bytes)
{
    if (!are_looked_up())
        abort();
    return fault_is_due("malloc") ? ENOMEM : next_posix_memalign(ret_memory, alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    if (!are_looked_up())
        abort();
    return fault_is_due("malloc") ? NULL : next_aligned_alloc(alignment, bytes);
}

void free(void *memory)
{
    if (are_looked_up() && !is_early(memory))
        next_free(memory);
}
