/* glibc on x86-64: the thread pointer is the address of struct pthread, which begins with
 * tcbhead_t: its own address at +0 and +16, the dtv at +8 (sysdeps/x86_64/nptl/tls.h). The kernel
 * has an address in it, that of the list of robust mutexes (get_robust_list(2)), which each thread
 * registers when it begins. */
#include "proc/thread_pointer.h"
#include "proc/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The list is 0x2e0 bytes into the struct in glibc 2.36. Other versions differ, and the two
 * addresses prove which of the places before the list is right. The struct is as aligned as it has
 * members (TCB_ALIGNMENT). */
#define LIST_AT_MAX 0x600u
#define ALIGNMENT 64u
#define SELF_AT 16u

static bool is_pointer(const unsigned char *head, uint64_t address)
{
    uint64_t first, self;
    memcpy(&first, head, sizeof first);
    memcpy(&self, head + SELF_AT, sizeof self);
    return first == address && self == address;
}

int thread_pointer_find(pid_t tid, uint64_t *ret_pointer)
{
    unsigned char piece[ALIGNMENT];
    void *list = NULL;
    size_t list_bytes;
    if (syscall(SYS_get_robust_list, tid, &list, &list_bytes))
        return -errno;
    /* What is far before the list may be unmapped, so each place is read by itself. */
    uint64_t last = (uint64_t)(uintptr_t)list & ~(uint64_t)(ALIGNMENT - 1);
    for (uint64_t back = 0; back <= LIST_AT_MAX && back < last; back += ALIGNMENT) {
        if (memory_read(tid, last - back, piece, sizeof piece) < sizeof piece)
            return -ENOTSUP;
        if (is_pointer(piece, last - back)) {
            *ret_pointer = last - back;
            return 0;
        }
    }
    return -ENOTSUP;
}

uint64_t thread_pointer_dtv(uint64_t pointer)
{
    return pointer + 8;
}
