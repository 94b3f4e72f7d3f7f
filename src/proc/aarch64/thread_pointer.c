/* glibc on AArch64: struct pthread lies before the thread pointer, where the dtv's address is
 * (sysdeps/aarch64/nptl/tls.h). The list of robust mutexes (get_robust_list(2)), which each thread
 * registers when it begins, is in the struct, so its distance depends on the version. */
#include "proc/thread_pointer.h"
#include "proc/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From the list to the end of the struct, in any version; the struct is as aligned as this. */
#define DISTANCE_MIN 0x200u
#define DISTANCE_MAX 0x1000u
#define ALIGNMENT 16u
/* The first block follows the thread pointer, but for its alignment. */
#define FIRST_BLOCK_MAX (64u << 10)

/* The distance in our own C library, which most programs share; 0 if it has none. */
static uint64_t own_distance(void)
{
    void *list = NULL;
    size_t list_bytes;
    if (syscall(SYS_get_robust_list, 0, &list, &list_bytes))
        return 0;
    uint64_t distance = (uint64_t)(uintptr_t)__builtin_thread_pointer() - (uint64_t)(uintptr_t)list;
    return distance >= DISTANCE_MIN && distance <= DISTANCE_MAX ? distance : 0;
}

/* Whether a thread pointer is at the address. It leads to the dtv: behind its length and its
 * generation, the row of the first module has the address of that block. Returns 0, or -EAGAIN. */
static int check(pid_t tid, const struct stack_areas *areas, uint64_t address)
{
    uint64_t dtv, rows[2 * THREAD_DTV_ROW_BYTES / sizeof(uint64_t)];
    if (memory_read(tid, areas, address, &dtv, sizeof dtv) < sizeof dtv || !dtv || dtv % 8 ||
        memory_read(tid, areas, dtv, rows, sizeof rows) < sizeof rows)
        return -EAGAIN;
    return rows[2] > address && rows[2] - address < FIRST_BLOCK_MAX ? 0 : -EAGAIN;
}

int thread_pointer_find(pid_t tid, const struct stack_areas *areas, uint64_t *ret_pointer)
{
    void *list = NULL;
    size_t list_bytes;
    if (syscall(SYS_get_robust_list, tid, &list, &list_bytes))
        return -errno;
    uint64_t address = (uint64_t)(uintptr_t)list, own = own_distance();
    if (!address || address > UINT64_MAX - DISTANCE_MAX)
        return -ENOTSUP;
    uint64_t pointer = address + own;
    int err = own ? check(tid, areas, pointer) : -EAGAIN;
    for (uint64_t distance = DISTANCE_MIN; err && distance <= DISTANCE_MAX; distance += ALIGNMENT) {
        pointer = (address + distance) & ~(uint64_t)(ALIGNMENT - 1);
        err = check(tid, areas, pointer);
    }
    if (err)
        return -ENOTSUP;
    *ret_pointer = pointer;
    return 0;
}

/* It follows 24 words of padding and a list's two addresses (nptl/descr.h). */
#define TID_AT (26 * sizeof(uint64_t))

pid_t pthread_tid(uint64_t pthread, pid_t tid, const struct stack_areas *areas)
{
    int32_t id;
    bool was_read =
        pthread && memory_read(tid, areas, pthread + TID_AT, &id, sizeof id) == sizeof id;
    return was_read && id > 0 ? id : 0;
}

/* tcbhead_t begins with the dtv. */
uint64_t thread_pointer_dtv(uint64_t pointer)
{
    return pointer;
}
