/* glibc's struct pthread contains the list of robust mutexes, whose address the kernel has
 * (get_robust_list(2)), and further on the member start_routine (nptl/descr.h): 0x360 bytes further
 * in glibc 2.36 on x86-64. In between are 32 rows of thread-specific data, which may hold anything,
 * and pointers to more of them; then flags, locks, the thread's result, which is not set yet, and
 * its scheduling parameters. Other versions have other members, but these in this order, so the
 * first address of code after the rows is the function's. */
#include "proc/thread_start.h"
#include "base/array.h"
#include "base/upper_bound.h"
#include "proc/maps.h"
#include "proc/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROWS_BYTES (32 * 2 * sizeof(uint64_t)) /* specific_1stblock */
#define SEARCHED_BYTES 0x400u                  /* behind the list and the rows */

static int add_range(void *context, const struct maps_entry *entry)
{
    struct code_ranges *ranges = context;
    if (!entry->executable)
        return 0;
    return array_append(&ranges->items, &ranges->count, &ranges->capacity,
                        (struct code_range){entry->start, entry->end});
}

int code_ranges_read(struct code_ranges *ranges, int maps_fd)
{
    ranges->count = 0;
    return maps_read(maps_fd, add_range, ranges);
}

void code_ranges_free(struct code_ranges *ranges)
{
    free(ranges->items);
    *ranges = (struct code_ranges){0};
}

static bool is_code(const struct code_ranges *ranges, uint64_t address)
{
    size_t after = UPPER_BOUND(ranges->items, ranges->count, start, address);
    return after && address < ranges->items[after - 1].end;
}

uint64_t thread_robust_list(pid_t tid)
{
    void *list = NULL;
    size_t list_bytes;
    return syscall(SYS_get_robust_list, tid, &list, &list_bytes) ? 0 : (uint64_t)(uintptr_t)list;
}

int thread_start_find(pid_t tid, const struct code_ranges *ranges, uint64_t *ret_start)
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
        if (is_code(ranges, words[i])) {
            *ret_start = words[i];
            return 0;
        }
    }
    return -ENOTSUP;
}
