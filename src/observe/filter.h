/* Drops perf samples in the kernel, before their stacks are copied: a BPF program on the event that
 * looks up the process in a map, and for samples that are of pages of memory, chooses some of
 * these.
 *
 * The kernel needs no BTF for it, but CAP_BPF and CAP_PERFMON (bpf(2), capabilities(7)). */
#ifndef FGPROF_OBSERVE_FILTER_H
#define FGPROF_OBSERVE_FILTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Pages are chosen apart by whether a huge page may begin there. One that does weighs as much as
 * all others in it, and there are few. */
enum page_group { PAGES_INSIDE, PAGES_OF_BEGINS, PAGE_GROUPS };

/* Of which pages samples pass: those whose rank is at most `limit`. Shared with the program, which
 * halves `limit` when more samples have passed than there were tokens, and adds `more` of them. So
 * of many faults at once, so many pages are left at least. */
struct page_choice {
    uint64_t limit;
    int64_t tokens, more;
};

/* A fault that has passed. */
struct passed_fault {
    uint64_t address;
    uint32_t tid, process_id; /* in our PID namespace */
    uint64_t at_ns;           /* CLOCK_MONOTONIC of the first time namespace */
    uint64_t limit;           /* of struct page_choice, then */
};

/* The last faults of a CPU that have passed, as the program notes them: number n is at n %
 * PASSED_MAX. */
#define PASSED_MAX 512
struct passed_faults {
    uint64_t count; /* since the beginning */
    struct passed_fault items[PASSED_MAX];
};

/* One in 2^level pages of a group is chosen. */
struct page_levels {
    unsigned of[PAGE_GROUPS];
};

struct filter {
    int map_fd, program_fd; /* -1: there is none */
    uint32_t capacity;      /* how many processes the map has room for */
    uint64_t seed;          /* of the choice of pages */
    int shared_fd;
    volatile struct page_choice *choices;        /* of each group; NULL: all pages pass */
    const volatile struct passed_faults *passed; /* by CPU; NULL: they are not noted */
    unsigned cpu_count;                          /* of `passed`: a power of two */
    bool is_exact; /* only samples of processes that were added pass */
};

/* Returns 0 or a negative errno if the kernel, or its security settings, do not allow it. */
int filter_open(struct filter *ret_filter);

/* The same for an event that has an address, and only some pages: all at first. The seed decides
 * which. In a PID namespace of its own, all processes of others pass as soon as one of them is
 * added; and all that there are before Linux 5.7. */
int filter_open_for_pages(uint64_t seed, struct filter *ret_filter);

/* The group and the rank of the page that the address is in. Each rank is equally likely. */
enum page_group filter_page_group(uint64_t address);
uint64_t filter_page_rank(uint64_t seed, uint64_t address);

/* Finds the first fault on this address that has passed on this CPU, of those from number *number
 * on, and sets *number to its own. Returns false if it is not noted, or no longer. */
bool filter_find_fault(const struct filter *filter, int cpu, uint64_t address, uint64_t *number,
                       struct passed_fault *ret_fault);

/* Applies the filter to an event. Returns 0 or a negative errno. */
int filter_apply(const struct filter *filter, int event_fd);

/* Lets samples of this process pass, or no longer. If there is no room for it, a larger map and a
 * program that uses it take the place of the old ones, and *ret_has_grown is set: events to which
 * the filter was applied before go on with the old ones, and have to be opened again. Returns 0 or
 * a negative errno: the process was not added, and the filter is as it was. */
int filter_add(struct filter *filter, pid_t process_id, bool *ret_has_grown);
void filter_remove(const struct filter *filter, pid_t process_id);

void filter_close(struct filter *filter);

#endif
