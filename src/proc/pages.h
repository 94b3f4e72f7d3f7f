/* Which pages of a process's memory are resident: /proc/PID/pagemap, which the kernel describes in
 * Documentation/admin-guide/mm/pagemap.rst. */
#ifndef FGPROF_PROC_PAGES_H
#define FGPROF_PROC_PAGES_H

#include "proc/program.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* File pages that are already in memory are mapped several at a time, if they are in the same
 * window: fault_around_bytes in the kernel's mm/memory.c, which can be changed there. */
#define PAGES_PER_WINDOW 16

enum page_kind {
    PAGE_ABSENT,    /* it is not mapped, or swapped out */
    PAGE_ZEROS,     /* the one page of zeros that memory is read as which was never written */
    PAGE_ANONYMOUS, /* memory of the process's own */
    PAGE_FILE,      /* of a file, or shared memory */
};

struct page {
    enum page_kind kind;
    uint64_t start, bytes; /* bytes is more than a page's for a huge one */
};

struct pages {
    int pagemap_fd;    /* -1: not open */
    int flags_fd;      /* /proc/kpageflags; -1: not open, or not permitted */
    bool has_scan;     /* ioctl PAGEMAP_SCAN, from Linux 6.7 on */
    size_t huge_bytes; /* of a huge page; 0: there are none */
};

size_t page_bytes(void);

/* Opens the pages of the program's memory. Returns 0 or a negative errno. */
int pages_open(const struct program *program, struct pages *ret_pages);
void pages_close(struct pages *pages);

/* Looks at the page that holds the address. Returns 0 or a negative errno: -ESRCH if the memory is
 * gone. Kernels before 6.7 show only root which pages are huge or zero; otherwise these count as
 * ordinary pages. */
int pages_look(const struct pages *pages, uint64_t address, struct page *ret_page);

/* How many of `count` pages from `start` on are resident. Returns 0 or a negative errno. */
int pages_count(const struct pages *pages, uint64_t start, size_t count, size_t *ret_present);

/* Which of the pages are resident: their addresses must ascend. Returns 0 or a negative errno. */
int pages_find(const struct pages *pages, const uint64_t *addresses, size_t count,
               bool *ret_present);

/* The process's resident memory in bytes, as in its `statm`. Returns 0 or a negative errno. */
int pages_resident(const struct program *program, uint64_t *ret_bytes);

#endif
