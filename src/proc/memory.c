#include "proc/memory.h"

#include <errno.h>
#include <limits.h>
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

/* Reads up to IOV_MAX ranges with one call, which ends at the first byte that can't be read
 * (process_vm_rw_core in the kernel's mm/process_vm_access.c). Returns how many ranges are done
 * with, among them the one that ended the call; or a negative errno. */
static ssize_t read_some(pid_t tid, struct memory_range *ranges, size_t count)
{
    struct iovec local[IOV_MAX], remote[IOV_MAX];
    size_t used = count < IOV_MAX ? count : IOV_MAX;
    for (size_t i = 0; i < used; i++) {
        local[i] = (struct iovec){ranges[i].buffer, ranges[i].bytes};
        remote[i] = (struct iovec){(void *)(uintptr_t)ranges[i].address, ranges[i].bytes};
    }
    ssize_t got = process_vm_readv(tid, local, used, remote, used, 0);
    if (got < 0 && errno != EFAULT)
        return -errno;
    size_t left = got < 0 ? 0 : (size_t)got;
    for (size_t i = 0; i < used; i++) {
        ranges[i].got = left < ranges[i].bytes ? left : ranges[i].bytes;
        left -= ranges[i].got;
        if (ranges[i].got < ranges[i].bytes)
            return (ssize_t)i + 1;
    }
    return (ssize_t)used;
}

int memory_read_many(pid_t tid, struct memory_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ranges[i].got = 0;
    for (size_t done = 0; done < count;) {
        ssize_t some = read_some(tid, &ranges[done], count - done);
        if (some < 0)
            return (int)some;
        done += (size_t)some;
    }
    return 0;
}
