#include "proc/memory.h"

#include <sys/uio.h>

/* process_vm_readv rather than /proc/PID/mem: it respects PROT_NONE, so a stack's guard page ends
 * the copy, whereas /proc/PID/mem reads on through it (FOLL_FORCE, mm/gup.c). */
size_t memory_read(pid_t tid, uint64_t address, void *buffer, size_t bytes)
{
    struct iovec local = {buffer, bytes};
    struct iovec remote = {(void *)(uintptr_t)address, bytes};
    ssize_t got = process_vm_readv(tid, &local, 1, &remote, 1, 0);
    return got < 0 ? 0 : (size_t)got;
}
