#include "agent/pages.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *pages_new(size_t bytes)
{
    long address =
        syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == -1)
        return NULL;
    void *memory = (void *)address;
    if (!madvise(memory, bytes, MADV_WIPEONFORK))
        return memory;
    pages_free(memory, bytes);
    return NULL;
}

void pages_free(void *memory, size_t bytes)
{
    syscall(SYS_munmap, memory, bytes);
}
