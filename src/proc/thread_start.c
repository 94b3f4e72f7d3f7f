/* glibc's struct pthread contains the list of robust mutexes, whose address the kernel has
 * (get_robust_list(2)), and further on the member start_routine (nptl/descr.h): 0x360 bytes further
 * in glibc 2.36 on x86-64. In between are 32 rows of thread-specific data, which may hold anything,
 * and pointers to more of them; then flags, locks, the thread's result, which is not set yet, and
 * its scheduling parameters. Other versions have other members, but these in this order, so the
 * first address of code after the rows is the function's. */
#include "proc/thread_start.h"
#include "proc/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROWS_BYTES (32 * 2 * sizeof(uint64_t)) /* specific_1stblock */
#define SEARCHED_BYTES 0x400u                  /* behind the list and the rows */

/* The area of a stack also has addresses below it, to which it may grow. */
static bool is_code(const struct stack_areas *areas, uint64_t address)
{
    const struct stack_area *area = stack_areas_find(areas, address);
    return area && area->has_code && address >= area->start;
}

uint64_t thread_robust_list(pid_t tid)
{
    void *list = NULL;
    size_t list_bytes;
    return syscall(SYS_get_robust_list, tid, &list, &list_bytes) ? 0 : (uint64_t)(uintptr_t)list;
}

int thread_start_find(pid_t tid, const struct stack_areas *areas, uint64_t *ret_start)
{
    uint64_t words[SEARCHED_BYTES / sizeof(uint64_t)];
    void *list = NULL;
    size_t list_bytes;
    if (syscall(SYS_get_robust_list, tid, &list, &list_bytes))
        return -errno;
    if (!list)
        return -ENOTSUP;
    uint64_t from = (uint64_t)(uintptr_t)list + list_bytes + ROWS_BYTES;
    size_t count = memory_read(tid, NULL, from, words, sizeof words) / sizeof *words;
    for (size_t i = 0; i < count; i++) {
        if (is_code(areas, words[i])) {
            *ret_start = words[i];
            return 0;
        }
    }
    return -ENOTSUP;
}
