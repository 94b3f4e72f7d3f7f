/* The functions that allocate, in place of libc's. Each calls the next one of its name, and counts.
 *
 * While no profile is requested, that costs a few loads. operator new and delete of C++ come here
 * through malloc and free, and so do libc's own calls. */
#include "agent/hook.h"
#include "agent/next.h"
#include "agent/objects.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <malloc.h>

static void *made(void *object, size_t bytes)
{
    if (object)
        object_made(object, bytes);
    return object;
}

static bool is_due(size_t bytes)
{
    return object_is_due(bytes, AGENT_WANTS_HEAP);
}

/* Not by the name malloc, which may be another's. */
static inline void *allocate(size_t bytes)
{
    if (!is_due(bytes))
        return next.malloc(bytes);
    return made(next.malloc(bytes), bytes);
}

EXPORT void *malloc(size_t bytes)
{
    return allocate(bytes);
}

EXPORT void *calloc(size_t count, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all) || !is_due(all))
        return next.calloc(count, bytes);
    return made(next.calloc(count, bytes), all);
}

EXPORT void free(void *object)
{
    if (next_arena_has(object))
        return;
    object_gone(object);
    next.free(object);
}

/* The reader knows this object. It is reported as freed before the allocator can give its memory to
 * another thread. */
static __attribute__((noinline)) void *resize_known(void *object, size_t bytes, bool due)
{
    size_t old_bytes = next.malloc_usable_size(object);
    void *resized = next.realloc(object, bytes);
    if (!resized && bytes)
        object_stays(object, old_bytes);
    else if (due)
        made(resized, bytes);
    return resized;
}

static void *resize(void *object, size_t bytes)
{
    if (!object)
        return allocate(bytes);
    if (next_arena_has(object))
        return next_arena_move(object, bytes);
    bool due = is_due(bytes);
    if (object_gone(object))
        return resize_known(object, bytes, due);
    if (!due)
        return next.realloc(object, bytes);
    return made(next.realloc(object, bytes), bytes);
}

EXPORT void *realloc(void *object, size_t bytes)
{
    return resize(object, bytes);
}

EXPORT void *reallocarray(void *object, size_t count, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return resize(object, all);
}

EXPORT int posix_memalign(void **ret_object, size_t alignment, size_t bytes)
{
    bool due = is_due(bytes);
    int err = next.posix_memalign(ret_object, alignment, bytes);
    if (due && !err)
        made(*ret_object, bytes);
    return err;
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    if (!is_due(bytes))
        return next.aligned_alloc(alignment, bytes);
    return made(next.aligned_alloc(alignment, bytes), bytes);
}

EXPORT void *memalign(size_t alignment, size_t bytes)
{
    if (!is_due(bytes))
        return next.memalign(alignment, bytes);
    return made(next.memalign(alignment, bytes), bytes);
}

EXPORT void *valloc(size_t bytes)
{
    if (!is_due(bytes))
        return next.valloc(bytes);
    return made(next.valloc(bytes), bytes);
}

EXPORT void *pvalloc(size_t bytes)
{
    if (!is_due(bytes))
        return next.pvalloc(bytes);
    return made(next.pvalloc(bytes), bytes);
}

static const struct hook rows[] = {
    {"malloc", (void *)malloc, &next.malloc},
    {"calloc", (void *)calloc, &next.calloc},
    {"realloc", (void *)realloc, &next.realloc},
    {"reallocarray", (void *)reallocarray, &next.reallocarray},
    {"posix_memalign", (void *)posix_memalign, &next.posix_memalign},
    {"aligned_alloc", (void *)aligned_alloc, &next.aligned_alloc},
    {"memalign", (void *)memalign, &next.memalign},
    {"valloc", (void *)valloc, &next.valloc},
    {"pvalloc", (void *)pvalloc, &next.pvalloc},
    {"free", (void *)free, &next.free},
};
const struct hooks malloc_hooks = HOOKS(rows);
