/* The functions that the agent's functions replace and call: those of libc, or of another allocator
 * in the program. */
#ifndef FGPROF_AGENT_NEXT_H
#define FGPROF_AGENT_NEXT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <threads.h>

struct next {
    void *(*malloc)(size_t bytes);
    void *(*calloc)(size_t count, size_t bytes);
    void *(*realloc)(void *object, size_t bytes);
    void *(*reallocarray)(void *object, size_t count, size_t bytes); /* only to know it by */
    int (*posix_memalign)(void **ret_object, size_t alignment, size_t bytes);
    void *(*aligned_alloc)(size_t alignment, size_t bytes);
    void *(*memalign)(size_t alignment, size_t bytes);
    void *(*valloc)(size_t bytes);
    void *(*pvalloc)(size_t bytes);
    void (*free)(void *object);
    size_t (*malloc_usable_size)(void *object);
    void *(*mmap)(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
    int (*munmap)(void *address, size_t bytes);
    void *(*mremap)(void *address, size_t old_bytes, size_t bytes, int flags, ...);
    int (*pthread_create)(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);
    int (*thrd_create)(thrd_t *thread, thrd_start_t start, void *argument);
};

/* Each function may be called at any time: at first they are start.c's, which find the others. */
extern struct next next;

/* Finds the functions; `handle` is as for dlsym. If no library has a function, its entry fails with
 * ENOMEM. */
void next_find(void *handle, struct next *ret_next);

/* Memory for the time of the search, because dlsym itself may allocate. It is zeroed, and never
 * freed. NULL: there is no more. */
#define NEXT_ARENA_BYTES (64u << 10)
extern char next_arena[NEXT_ARENA_BYTES];

void *next_arena_alloc(size_t bytes);

/* A copy of an object of the arena, by next.malloc. */
void *next_arena_move(const void *object, size_t bytes);

static inline bool next_arena_has(const void *object)
{
    return (uintptr_t)object - (uintptr_t)next_arena < NEXT_ARENA_BYTES;
}

#endif
