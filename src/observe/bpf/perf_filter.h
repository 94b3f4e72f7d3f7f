/* Drops perf samples in the kernel, before their stacks are copied: a BPF program on each event
 * passes only samples of the followed processes and, for page faults, only those on some pages.
 *
 * Needs Linux 5.5 (5.7 in a PID namespace), CAP_BPF and CAP_PERFMON (capabilities(7)), but no
 * BTF. */
#ifndef FGPROF_OBSERVE_BPF_PERF_FILTER_H
#define FGPROF_OBSERVE_BPF_PERF_FILTER_H

#include "observe/bpf/perf_filter_format.h"

#include <stdbool.h>
#include <sys/types.h>

/* One in 2^level pages of a group is chosen. */
struct page_levels {
    unsigned of[PAGE_GROUPS];
};

/* All zeros: there is no filter. */
struct filter {
    struct perf_filter_bpf *programs;
    /* For page faults only; else NULL and 0: */
    volatile struct page_choice *choices;        /* by group */
    const volatile struct passed_faults *passed; /* by CPU */
    unsigned passed_cpus;
    bool is_exact; /* only samples of processes that were added pass */
};

/* Returns 0, or a negative errno if the kernel or its security settings do not allow it. */
int filter_open(struct filter *ret_filter);

/* The same for page faults: faults on some pages pass, at first on all pages. The seed decides
 * which pages are chosen. */
int filter_open_for_pages(uint64_t seed, struct filter *ret_filter);

/* The group and the rank of the page that contains the address. All ranks are equally likely. */
enum page_group filter_page_group(uint64_t address);
uint64_t filter_page_rank(uint64_t seed, uint64_t address);

/* How many faults have passed on this CPU, which is the number of the next one. */
uint64_t filter_passed_count(const struct filter *filter, int cpu);

/* Finds the first fault on this address that has passed on this CPU, from number *number on, and
 * sets *number to that fault's. Returns false if the fault is not noted, or no longer. */
bool filter_find_fault(const struct filter *filter, int cpu, uint64_t address, uint64_t *number,
                       struct passed_fault *ret_fault);

/* Applies the filter to an event. Returns 0 or a negative errno. */
int filter_apply(const struct filter *filter, int event_fd);

/* Runs this program of type BPF_PROG_TYPE_PERF_EVENT for each sample that passes filter_open's
 * filter; -1: none. The program's return value decides whether the sample is kept. Returns 0 or a
 * negative errno. */
int filter_set_next(const struct filter *filter, int program_fd);

/* Starts or stops passing samples of this process. If we are in a PID namespace other than the
 * first, processes of other namespaces can't be distinguished: once one is added, they all pass.
 * Returns 0, or -EINVAL if there can be no such process. */
int filter_add(struct filter *filter, pid_t process_id);
void filter_remove(const struct filter *filter, pid_t process_id);

void filter_close(struct filter *filter);

#endif
