/* Drops perf samples of other processes in the kernel, before their stacks are copied: a BPF
 * program on the event that looks up the process in a map.
 *
 * The kernel needs no BTF for it, but CAP_BPF and CAP_PERFMON (bpf(2), capabilities(7)). */
#ifndef FGPROF_OBSERVE_FILTER_H
#define FGPROF_OBSERVE_FILTER_H

#include <stdbool.h>
#include <sys/types.h>

struct filter {
    int map_fd, program_fd; /* -1: there is none */
};

/* Returns 0 or a negative errno if the kernel, or its security settings, do not allow it. */
int filter_open(struct filter *ret_filter);

/* Applies the filter to an event. Returns 0 or a negative errno. */
int filter_apply(const struct filter *filter, int event_fd);

/* Lets samples of this process pass, or no longer. Returns 0, or a negative errno if it can't be
 * added: there are too many. */
int filter_add(const struct filter *filter, pid_t process_id);
void filter_remove(const struct filter *filter, pid_t process_id);

void filter_close(struct filter *filter);

#endif
