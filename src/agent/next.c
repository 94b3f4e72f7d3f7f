#include "agent/next.h"
#include "agent/symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#define ALIGNMENT 16u /* of what malloc returns */

_Alignas(ALIGNMENT) char next_arena[NEXT_ARENA_BYTES];
static atomic_size_t arena_used;

void *next_arena_alloc(size_t bytes)
{
    /* In front of each object stands its size. */
    if (bytes > NEXT_ARENA_BYTES - ALIGNMENT)
        return NULL;
    size_t all = ALIGNMENT + ((bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1));
    size_t at = atomic_fetch_add(&arena_used, all);
    if (at > NEXT_ARENA_BYTES - all)
        return NULL;
    memcpy(&next_arena[at], &bytes, sizeof bytes);
    return &next_arena[at + ALIGNMENT];
}

void *next_arena_move(const void *object, size_t bytes)
{
    size_t old_bytes;
    memcpy(&old_bytes, (const char *)object - ALIGNMENT, sizeof old_bytes);
    void *moved = next.malloc(bytes);
    if (moved)
        memcpy(moved, object, old_bytes < bytes ? old_bytes : bytes);
    return moved;
}

static void *none_of_size(size_t bytes)
{
    (void)bytes;
    errno = ENOMEM;
    return NULL;
}

static void *none_aligned(size_t alignment, size_t bytes)
{
    (void)alignment;
    return none_of_size(bytes);
}

static int none_posix(void **ret_object, size_t alignment, size_t bytes)
{
    (void)ret_object;
    (void)alignment;
    (void)bytes;
    return ENOMEM;
}

static size_t size_not_known(void *object)
{
    (void)object;
    return 0;
}

struct behind {
    const char *name;
    uint64_t function; /* what dlsym found */
    bool is_own, has_passed;
};

static bool look_behind(const struct module *module, void *context)
{
    struct behind *behind = context;
    struct symbols symbols;
    if (module_has(module, (uintptr_t)look_behind)) {
        behind->has_passed = true;
        behind->is_own = module_has(module, behind->function);
        return !behind->is_own;
    }
    if (!behind->has_passed || !symbols_of(module, &symbols))
        return false;
    behind->function = symbols_address(&symbols, behind->name);
    return behind->function;
}

/* A library may have its own dlsym that passes calls on. RTLD_NEXT is then relative to that library
 * and not to the agent, and may find the agent itself if the library comes first. */
static void *find_function(void *handle, const char *name)
{
    void *function = dlsym(handle, name);
    struct behind behind = {.name = name, .function = (uintptr_t)function};
    if (function && modules_visit(look_behind, &behind))
        return (void *)behind.function;
    return NULL;
}

static int no_thread(thrd_t *thread, thrd_start_t start, void *argument)
{
    (void)thread;
    (void)start;
    (void)argument;
    return thrd_error;
}

void next_find(void *handle, struct next *ret_next)
{
    struct next found = {.posix_memalign = none_posix,
                         .aligned_alloc = none_aligned,
                         .memalign = none_aligned,
                         .valloc = none_of_size,
                         .pvalloc = none_of_size,
                         .malloc_usable_size = size_not_known,
                         .thrd_create = no_thread};
    const struct {
        const char *name;
        void *function; /* pointer to the field */
    } names[] = {{"malloc", &found.malloc},
                 {"calloc", &found.calloc},
                 {"realloc", &found.realloc},
                 {"reallocarray", &found.reallocarray},
                 {"posix_memalign", &found.posix_memalign},
                 {"aligned_alloc", &found.aligned_alloc},
                 {"memalign", &found.memalign},
                 {"valloc", &found.valloc},
                 {"pvalloc", &found.pvalloc},
                 {"free", &found.free},
                 {"malloc_usable_size", &found.malloc_usable_size},
                 {"mmap", &found.mmap},
                 {"munmap", &found.munmap},
                 {"mremap", &found.mremap},
                 {"pthread_create", &found.pthread_create},
                 {"thrd_create", &found.thrd_create}};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        void *function = find_function(handle, names[i].name);
        if (function)
            memcpy(names[i].function, &function, sizeof function);
    }
    *ret_next = found;
}
