#include "proc/pages.h"
#include "proc/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* An entry of pagemap. */
#define ENTRY_PRESENT (1ull << 63)
#define ENTRY_FILE (1ull << 61)
#define ENTRY_FRAME ((1ull << 55) - 1) /* 0 unless we have CAP_SYS_ADMIN */

/* An entry of kpageflags, as in linux/kernel-page-flags.h. */
#define FLAG_HUGE (1ull << 22)
#define FLAG_ZEROS (1ull << 24)

/* ioctl PAGEMAP_SCAN, as in linux/fs.h from Linux 6.7 on. */
#define SCAN_FILE (1ull << 2)
#define SCAN_PRESENT (1ull << 3)
#define SCAN_ZEROS (1ull << 5)
#define SCAN_HUGE (1ull << 6)

struct scan_region {
    uint64_t start, end, categories;
};

struct scan_argument {
    uint64_t size, flags, start, end, walk_end, regions, region_count, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define PAGEMAP_SCAN_REQUEST _IOWR('f', 16, struct scan_argument)

/* How many entries are read at once, and how many unwanted entries between two wanted ones are read
 * along with them, which is cheaper than another call. */
#define ENTRIES_AT_ONCE 2048
#define ENTRIES_BETWEEN 128

size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static int scan(const struct pages *pages, uint64_t page, uint64_t *ret_categories)
{
    struct scan_region region = {0};
    struct scan_argument argument = {
        .size = sizeof argument,
        .start = page,
        .end = page + page_bytes(),
        .regions = (uint64_t)(uintptr_t)&region,
        .region_count = 1,
        .category_anyof_mask = SCAN_PRESENT,
        .return_mask = SCAN_FILE | SCAN_PRESENT | SCAN_ZEROS | SCAN_HUGE,
    };
    if (ioctl(pages->pagemap_fd, PAGEMAP_SCAN_REQUEST, &argument) < 0)
        return -errno;
    *ret_categories = region.categories;
    return 0;
}

/* Tries it on our own memory: the kernel may not know the call. */
static bool kernel_has_scan(void)
{
    struct pages own = {.pagemap_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)};
    uint64_t categories, page = (uintptr_t)&categories & ~(page_bytes() - 1);
    bool has_scan = own.pagemap_fd >= 0 && scan(&own, page, &categories) == 0;
    if (own.pagemap_fd >= 0)
        close(own.pagemap_fd);
    return has_scan;
}

int pages_open(const struct program *program, struct pages *ret_pages)
{
    struct pages pages = {
        .flags_fd = -1,
        .has_scan = kernel_has_scan(),
        .huge_bytes =
            (size_t)procfs_number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", 0),
    };
    char path[48];
    snprintf(path, sizeof path, "task/%d/pagemap", program->tid);
    pages.pagemap_fd = openat(program->proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (pages.pagemap_fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    if (!pages.has_scan)
        pages.flags_fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
    *ret_pages = pages;
    return 0;
}

void pages_close(struct pages *pages)
{
    if (pages->pagemap_fd >= 0)
        close(pages->pagemap_fd);
    if (pages->flags_fd >= 0)
        close(pages->flags_fd);
    pages->pagemap_fd = pages->flags_fd = -1;
}

/* Reads entries of pagemap from a page on. Those that the file does not have are of no memory. */
static int read_entries(const struct pages *pages, uint64_t address, uint64_t *entries,
                        size_t count)
{
    off_t offset = (off_t)(address / page_bytes() * sizeof *entries);
    ssize_t got = pread(pages->pagemap_fd, entries, count * sizeof *entries, offset);
    if (got <= 0)
        return got ? -errno : -ESRCH;
    for (size_t i = (size_t)got / sizeof *entries; i < count; i++)
        entries[i] = 0;
    return 0;
}

/* The same from a scan, as far as it is known. */
static int look_without_scan(const struct pages *pages, uint64_t address, uint64_t *ret_categories)
{
    uint64_t entry, flags = 0;
    int err = read_entries(pages, address, &entry, 1);
    if (err)
        return err;
    uint64_t frame = entry & ENTRY_FRAME;
    *ret_categories = 0;
    if (!(entry & ENTRY_PRESENT))
        return 0;
    if (frame && pages->flags_fd >= 0 &&
        pread(pages->flags_fd, &flags, sizeof flags, (off_t)(frame * sizeof flags)) != sizeof flags)
        flags = 0;
    *ret_categories = SCAN_PRESENT | (entry & ENTRY_FILE ? SCAN_FILE : 0) |
                      (flags & FLAG_HUGE ? SCAN_HUGE : 0) | (flags & FLAG_ZEROS ? SCAN_ZEROS : 0);
    return 0;
}

static enum page_kind kind_of(uint64_t categories)
{
    if (!(categories & SCAN_PRESENT))
        return PAGE_ABSENT;
    if (categories & SCAN_ZEROS)
        return PAGE_ZEROS;
    return categories & SCAN_FILE ? PAGE_FILE : PAGE_ANONYMOUS;
}

int pages_look(const struct pages *pages, uint64_t address, struct page *ret_page)
{
    struct page page = {.start = address & ~(uint64_t)(page_bytes() - 1), .bytes = page_bytes()};
    uint64_t categories = 0;
    int err = pages->has_scan ? scan(pages, page.start, &categories)
                              : look_without_scan(pages, page.start, &categories);
    if (err)
        return err;
    size_t huge_bytes = categories & SCAN_HUGE ? pages->huge_bytes : 0;
    page.kind = kind_of(categories);
    if (huge_bytes) {
        page.start &= ~(uint64_t)(huge_bytes - 1);
        page.bytes = huge_bytes;
    }
    *ret_page = page;
    return 0;
}

int pages_count(const struct pages *pages, uint64_t start, size_t count, size_t *ret_present)
{
    uint64_t entries[ENTRIES_AT_ONCE];
    size_t present = 0;
    for (size_t done = 0, some; done < count; done += some) {
        some = count - done < ENTRIES_AT_ONCE ? count - done : ENTRIES_AT_ONCE;
        int err = read_entries(pages, start + done * page_bytes(), entries, some);
        if (err)
            return err;
        for (size_t i = 0; i < some; i++)
            present += entries[i] & ENTRY_PRESENT ? 1 : 0;
    }
    *ret_present = present;
    return 0;
}

/* How many of the addresses, at least one, to read at once. Sets *ret_entries to the number of
 * entries to read for them. */
static size_t plan_run(const uint64_t *addresses, size_t count, size_t *ret_entries)
{
    uint64_t first = addresses[0] / page_bytes(), last = first;
    size_t taken = 1;
    for (; taken < count; taken++) {
        uint64_t next = addresses[taken] / page_bytes();
        if (next - last > ENTRIES_BETWEEN || next - first >= ENTRIES_AT_ONCE)
            break;
        last = next;
    }
    *ret_entries = (size_t)(last - first + 1);
    return taken;
}

int pages_find(const struct pages *pages, const uint64_t *addresses, size_t count,
               bool *ret_present)
{
    uint64_t entries[ENTRIES_AT_ONCE];
    for (size_t done = 0, taken, wanted; done < count; done += taken) {
        taken = plan_run(addresses + done, count - done, &wanted);
        int err = read_entries(pages, addresses[done], entries, wanted);
        if (err)
            return err;
        uint64_t first = addresses[done] / page_bytes();
        for (size_t i = done; i < done + taken; i++)
            ret_present[i] = entries[addresses[i] / page_bytes() - first] & ENTRY_PRESENT;
    }
    return 0;
}

/* One line of numbers of pages: size resident shared ... (proc(5)) */
int pages_resident(const struct program *program, uint64_t *ret_bytes)
{
    char path[48], line[128];
    uint64_t resident;
    snprintf(path, sizeof path, "task/%d/statm", program->tid);
    ssize_t length = procfs_read(program->proc_fd, path, line, sizeof line);
    if (length < 0)
        return (int)length;
    if (sscanf(line, "%*u %" SCNu64, &resident) != 1 || !resident)
        return -ESRCH;
    *ret_bytes = resident * page_bytes();
    return 0;
}
