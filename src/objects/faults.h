/* Page faults of processes, as the kernel reports them (perf_event_open(2),
 * PERF_COUNT_SW_PAGE_FAULTS): memory that becomes resident, with the registers and stack of the
 * thread that touches it first.
 *
 * There are more than can be reported, so some are chosen, in one of two ways.
 *
 * By page: each CPU has an event, and a program in the kernel passes the faults on some pages,
 * chosen by their address (observe/bpf/perf_filter.h). All faults on such a page are reported, so
 * if memory is freed and used again it is known which thread touched it last. How many pages are
 * chosen follows the rate of faults: a page that is chosen stays chosen when more of them are.
 *
 * By number: each thread has events, and one in so many of its faults is reported. It needs no
 * privilege, but does not show what became of a page afterwards. This is also done, besides by
 * page, if there are so many faults that even the program would take time. */
#ifndef FGPROF_OBJECTS_FAULTS_H
#define FGPROF_OBJECTS_FAULTS_H

#include "observe/bpf/perf_filter.h"
#include "observe/snapshot.h"
#include "proc/process.h"

enum faults_choice {
    FAULTS_BY_PAGE,
    FAULTS_BY_NUMBER,
    FAULTS_OF_USER, /* by number, and those that system calls cause are not seen */
};

/* A fault on a page that was not there before. */
struct fault {
    pid_t process_id, tid;
    uint64_t at_ns;   /* CLOCK_MONOTONIC */
    uint64_t address; /* that was touched */
    uint32_t weight;  /* for how many faults it stands */
    unsigned level;   /* one in 2^level pages is chosen */
    bool has_stack;
};

struct faults;

/* Begins to choose pages by this seed. Returns 0, -EACCES or -EPERM if it is not permitted at all,
 * or another negative errno. */
int faults_new(uint64_t seed, struct faults **ret_faults);

enum faults_choice faults_choice(const struct faults *faults);

/* Why they are not chosen by page: a negative errno; 0: they are. */
int faults_filter_refusal(const struct faults *faults);

/* Start or stop reporting faults of this process. Returns 0 or a negative errno: they are not
 * reported. */
int faults_follow(struct faults *faults, const struct process *process);
void faults_unfollow(struct faults *faults, pid_t process_id);

/* Reads what has come since, and adjusts how many faults are chosen. Call it often. Returns 0 or
 * -ENOMEM. */
int faults_read(struct faults *faults);

/* The earliest fault that is not skipped yet; NULL: there is none. Valid until the next call. */
const struct fault *faults_next(struct faults *faults);

/* Copies the registers and the stack of that fault: there must be room for faults_stack_bytes.
 * Returns false if it has none. If many stacks are larger, later faults report more of them. */
bool faults_copy_stack(struct faults *faults, struct snapshot *snapshot);
size_t faults_stack_bytes(const struct faults *faults);

void faults_skip(struct faults *faults);

/* All records before this time have been taken. */
uint64_t faults_taken_ns(const struct faults *faults);

/* When the process last executed a program, as far as that was read; 0: it has not. */
uint64_t faults_exec_ns(const struct faults *faults, pid_t process_id);

/* How many pages are chosen now. Of those that are, the rank (filter_page_rank of the seed) has so
 * many leading zeros at least as the level of their group. */
struct page_levels faults_levels(const struct faults *faults);

/* Have fewer pages chosen, and no more of them later: too many are known. */
void faults_choose_fewer(struct faults *faults);

/* Whether some faults of the chosen pages were not reported: for some memory it is then not known
 * whether it was used again. */
bool faults_are_rough(const struct faults *faults);

/* How many were lost because nobody read them in time, or because another profiler's event left it
 * unknown whose they were. */
uint64_t faults_lost(const struct faults *faults);

/* Accepts NULL. */
void faults_free(struct faults *faults);

#endif
