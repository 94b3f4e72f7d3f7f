/* glibc on x86-64: the thread pointer is the address of struct pthread, which begins with
 * tcbhead_t: its own address at +0 and +16, the dtv at +8 (sysdeps/x86_64/nptl/tls.h). The kernel
 * knows one address inside the struct: that of the list of robust mutexes (get_robust_list(2)),
 * which each thread registers when it begins. */
#include "proc/thread_pointer.h"
#include "proc/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The list is 0x2e0 bytes into the struct in glibc 2.36. Other versions differ, and the two self
 * addresses show which of the places before the list is right. The struct and its members are
 * aligned to TCB_ALIGNMENT. */
#define LIST_AT 0x2e0u
#define LIST_AT_MAX 0x600u
#define ALIGNMENT 64u
#define SELF_AT 16u

/* Whether struct pthread is at the address. Returns 0, -EAGAIN if it is not, or -EFAULT if the
 * memory can't be read. */
static int check(pid_t tid, const struct stack_areas *areas, uint64_t address)
{
    uint64_t head[3];
    if (memory_read(tid, areas, address, head, sizeof head) < sizeof head)
        return -EFAULT;
    return head[0] == address && head[SELF_AT / sizeof *head] == address ? 0 : -EAGAIN;
}

int thread_pointer_find(pid_t tid, const struct stack_areas *areas, uint64_t *ret_pointer)
{
    void *list = NULL;
    size_t list_bytes;
    if (syscall(SYS_get_robust_list, tid, &list, &list_bytes))
        return -errno;
    uint64_t address = (uint64_t)(uintptr_t)list;
    if (address < LIST_AT_MAX)
        return -ENOTSUP;
    uint64_t pointer = address - LIST_AT;
    int err = check(tid, areas, pointer) ? -EAGAIN : 0;
    /* What is far before the list may be unmapped, so each place is read by itself. */
    for (uint64_t back = address % ALIGNMENT; err == -EAGAIN && back <= LIST_AT_MAX;
         back += ALIGNMENT) {
        pointer = address - back;
        err = check(tid, areas, pointer);
    }
    if (err)
        return -ENOTSUP;
    *ret_pointer = pointer;
    return 0;
}

/* It has been 16 bytes before the list in all versions (nptl/descr.h). */
pid_t pthread_tid(uint64_t pthread, pid_t tid, const struct stack_areas *areas)
{
    int32_t id;
    bool was_read = check(tid, areas, pthread) == 0 &&
                    memory_read(tid, areas, pthread + LIST_AT - 16, &id, sizeof id) == sizeof id;
    return was_read && id > 0 ? id : 0;
}

uint64_t thread_pointer_dtv(uint64_t pointer)
{
    return pointer + 8;
}
