/* Data that the filter programs share with their loader: see perf_filter.h. */
#ifndef FGPROF_OBSERVE_BPF_PERF_FILTER_FORMAT_H
#define FGPROF_OBSERVE_BPF_PERF_FILTER_FORMAT_H

#include "base/random.h"

/* Pages at which a huge page may begin are chosen separately: such a page may weigh as much as all
 * the pages in the huge page, and there are few of them. */
enum page_group { PAGES_INSIDE, PAGES_OF_BEGINS, PAGE_GROUPS };

/* Samples pass if the rank of their page is at most `limit`. When more samples have passed than
 * there were tokens, the program halves `limit` and adds `more` tokens. So even after a burst of
 * faults, at least that many pages are left. */
struct page_choice {
    uint64_t limit;
    int64_t tokens, more;
};

/* A fault that has passed. */
struct passed_fault {
    uint64_t address;
    uint32_t tid, process_id; /* in the loader's PID namespace */
    uint64_t at_ns;           /* CLOCK_MONOTONIC of the first time namespace */
    uint64_t limit;           /* page_choice.limit at that time */
};

/* The last faults on a CPU that have passed: number n is at n % PASSED_MAX. */
#define PASSED_MAX 512
struct passed_faults {
    uint64_t count; /* since the start */
    struct passed_fault items[PASSED_MAX];
};

/* A huge page is what a full page of the lowest page table maps; its entries have 8 bytes. */
static inline enum page_group page_group(uint64_t address, unsigned page_bits)
{
    uint64_t in_huge_page = (1ull << (page_bits + page_bits - 3)) - 1;
    return (address & in_huge_page) >> page_bits ? PAGES_INSIDE : PAGES_OF_BEGINS;
}

static inline uint64_t page_rank(uint64_t seed, uint64_t address, unsigned page_bits)
{
    return random_number(seed, address >> page_bits);
}

#endif
