/* The functions that map memory, in place of libc's: for AGENT_WANTS_MMAP. What an allocator maps
 * for its objects is not counted, because the objects are. Calls within libc do not come here. */
#include "agent/hook.h"
#include "agent/next.h"
#include "agent/objects.h"

#include <stdarg.h>
#include <sys/mman.h>

/* The code of the allocator. */
static uint64_t allocator_start, allocator_limit;

void mmap_leave_out(uint64_t start, uint64_t limit)
{
    allocator_start = start;
    allocator_limit = limit;
}

static bool is_of_allocator(const void *caller)
{
    return (uintptr_t)caller >= allocator_start && (uintptr_t)caller < allocator_limit;
}

/* Memory that is only reserved (PROT_NONE) is not counted. */
static void *map(void *address, size_t bytes, int protection, int flags, int fd, off_t offset,
                 const void *caller)
{
    bool due = flags & MAP_ANONYMOUS && protection != PROT_NONE && !is_of_allocator(caller) &&
               object_is_due(bytes, AGENT_WANTS_MMAP);
    void *memory = next.mmap(address, bytes, protection, flags, fd, offset);
    if (memory == MAP_FAILED)
        return memory;
    if (flags & MAP_FIXED)
        mappings_gone(memory, bytes);
    if (due)
        mapping_made(memory, bytes);
    return memory;
}

EXPORT void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return map(address, bytes, protection, flags, fd, offset, __builtin_return_address(0));
}

#undef mmap64 /* in musl, a macro */
void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
EXPORT void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return map(address, bytes, protection, flags, fd, offset, __builtin_return_address(0));
}

EXPORT int munmap(void *address, size_t bytes)
{
    bool known = mappings_gone(address, bytes);
    int result = next.munmap(address, bytes);
    if (result && known)
        mapping_stays(address, bytes);
    return result;
}

EXPORT void *mremap(void *address, size_t old_bytes, size_t bytes, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(arguments, void *) : NULL;
    va_end(arguments);
    bool due =
        !is_of_allocator(__builtin_return_address(0)) && object_is_due(bytes, AGENT_WANTS_MMAP);
    bool known = mappings_gone(address, old_bytes);
    void *memory = next.mremap(address, old_bytes, bytes, flags, to);
    if (memory == MAP_FAILED) {
        if (known)
            mapping_stays(address, old_bytes);
        return memory;
    }
    if (flags & MREMAP_FIXED)
        mappings_gone(memory, bytes);
    if (due)
        mapping_made(memory, bytes);
    return memory;
}

static const struct hook rows[] = {
    {"mmap", (void *)mmap, &next.mmap},
    {"mmap64", (void *)mmap64, &next.mmap},
    {"munmap", (void *)munmap, &next.munmap},
    {"mremap", (void *)mremap, &next.mremap},
};
const struct hooks mmap_hooks = HOOKS(rows);
