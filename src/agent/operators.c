/* Other allocators have operator new and delete of their own, which do not call malloc, unlike
 * libstdc++'s. They could be replaced by name, as malloc is, but then a C program with the agent
 * would seem to have a C++ library. So calls of them are patched.
 *
 * Names are as the Itanium C++ ABI mangles them. All take a size or an object first, and then up to
 * two words: an alignment, a size, or a reference to std::nothrow. jemalloc's functions and those
 * of C23 have the same form. */
#include "agent/hook.h"
#include "agent/next.h"
#include "agent/objects.h"
#include "agent/patch.h"

#include <dlfcn.h>
#include <string.h>

#define ALLOCATING(X)                                                                              \
    X(_Znwm)                                                                                       \
    X(_Znam)                                                                                       \
    X(_ZnwmRKSt9nothrow_t)                                                                         \
    X(_ZnamRKSt9nothrow_t)                                                                         \
    X(_ZnwmSt11align_val_t)                                                                        \
    X(_ZnamSt11align_val_t)                                                                        \
    X(_ZnwmSt11align_val_tRKSt9nothrow_t)                                                          \
    X(_ZnamSt11align_val_tRKSt9nothrow_t)                                                          \
    X(mallocx)
#define FREEING(X)                                                                                 \
    X(_ZdlPv)                                                                                      \
    X(_ZdaPv)                                                                                      \
    X(_ZdlPvm)                                                                                     \
    X(_ZdaPvm)                                                                                     \
    X(_ZdlPvRKSt9nothrow_t)                                                                        \
    X(_ZdaPvRKSt9nothrow_t)                                                                        \
    X(_ZdlPvSt11align_val_t)                                                                       \
    X(_ZdaPvSt11align_val_t)                                                                       \
    X(_ZdlPvmSt11align_val_t)                                                                      \
    X(_ZdaPvmSt11align_val_t)                                                                      \
    X(_ZdlPvSt11align_val_tRKSt9nothrow_t)                                                         \
    X(_ZdaPvSt11align_val_tRKSt9nothrow_t)                                                         \
    X(dallocx)                                                                                     \
    X(sdallocx)                                                                                    \
    X(free_sized)                                                                                  \
    X(free_aligned_sized)

#define NEXT(name) void *(*name)(uintptr_t, uintptr_t, uintptr_t);
static struct {
    ALLOCATING(NEXT)
    FREEING(NEXT)
    void *(*rallocx)(void *object, size_t bytes, int flags);
} next_operators;

#define ALLOCATE(name)                                                                             \
    static void *hooked_##name(size_t bytes, uintptr_t first, uintptr_t second)                    \
    {                                                                                              \
        bool due = object_is_due(bytes, AGENT_WANTS_HEAP);                                         \
        void *object = next_operators.name(bytes, first, second);                                  \
        if (due && object)                                                                         \
            object_made(object, bytes);                                                            \
        return object;                                                                             \
    }
ALLOCATING(ALLOCATE)

#define FREE(name)                                                                                 \
    static void hooked_##name(void *object, uintptr_t first, uintptr_t second)                     \
    {                                                                                              \
        object_gone(object);                                                                       \
        next_operators.name((uintptr_t)object, first, second);                                     \
    }
FREEING(FREE)

static void *hooked_rallocx(void *object, size_t bytes, int flags)
{
    bool due = object_is_due(bytes, AGENT_WANTS_HEAP), known = object_gone(object);
    size_t old_bytes = known ? next.malloc_usable_size(object) : 0;
    void *resized = next_operators.rallocx(object, bytes, flags);
    if (!resized && known)
        object_stays(object, old_bytes);
    else if (resized && due)
        object_made(resized, bytes);
    return resized;
}

#define ROW(name) {#name, (void *)hooked_##name, &next_operators.name},
static const struct hook rows[] = {ALLOCATING(ROW) FREEING(ROW) ROW(rallocx)};

void operators_patch(const struct provider *provider, void *handle)
{
    static struct hook provided[sizeof rows / sizeof *rows];
    size_t count = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *function = dlsym(handle, rows[i].name);
        if ((uintptr_t)function < provider->start || (uintptr_t)function >= provider->limit)
            continue;
        memcpy((void *)(uintptr_t)rows[i].next, &function, sizeof function);
        provided[count++] = rows[i];
    }
    const struct hooks hooks = {provided, count};
    if (count)
        patch(&hooks);
}
