/* Page faults of processes, as the kernel reports them (perf_event_open(2),
 * PERF_COUNT_SW_PAGE_FAULTS): memory that becomes resident, with the registers and stack of the
 * thread that touches it first.
 *
 * There are more faults than can be reported, so some are chosen, in one of two ways.
 *
 * By page: each CPU has an event, and a BPF program passes the faults on some pages, chosen by
 * their address (observe/bpf/perf_filter.h). All faults on such a page are reported, so if memory
 * is freed and used again it is known which thread touched it last. The number of chosen pages
 * follows the rate of faults; if more pages are chosen, those that were chosen stay chosen.
 *
 * By number: each thread has events, and one in N of its faults is reported. This needs no
 * privilege, but does not show what became of a page afterwards. It is also done in addition to
 * choosing by page, if there are so many faults that even the BPF program would take time. */
#ifndef FGPROF_OBJECTS_FAULTS_H
#define FGPROF_OBJECTS_FAULTS_H

#include "observe/bpf/perf_filter.h"
#include "observe/snapshot.h"
#include "proc/process.h"

enum faults_choice {
    FAULTS_BY_PAGE,
    FAULTS_BY_NUMBER,
    FAULTS_OF_USER, /* by number, and faults in system calls are not seen */
};

/* A fault on a page that was not present before. */
struct fault {
    pid_t process_id, tid;
    uint64_t at_ns;   /* CLOCK_MONOTONIC */
    uint64_t address; /* the address that was touched */
    uint32_t weight;  /* how many faults it represents */
    unsigned level;   /* one in 2^level pages is chosen */
    bool has_stack;
};

struct faults;

/* Starts observing, with pages chosen by this seed. Returns 0, -EACCES or -EPERM if it is not
 * permitted at all, or another negative errno. */
int faults_new(uint64_t seed, struct faults **ret_faults);

enum faults_choice faults_choice(const struct faults *faults);

/* Why faults are not chosen by page: a negative errno; 0: they are. */
int faults_filter_refusal(const struct faults *faults);

/* Start or stop reporting faults of this process. Returns 0, or a negative errno if they can't be
 * reported. */
int faults_follow(struct faults *faults, const struct process *process);
void faults_unfollow(struct faults *faults, pid_t process_id);

/* Reads new records, and adjusts how many faults are chosen. Call it often. Returns 0 or -ENOMEM.
 */
int faults_read(struct faults *faults);

/* The earliest fault that is not skipped yet; NULL: there is none. Valid until the next call. */
const struct fault *faults_next(struct faults *faults);

/* Copies the registers and the stack of that fault: there must be room for faults_stack_bytes.
 * Returns false if it has none. If many stacks are larger, later faults include more of them. */
bool faults_copy_stack(struct faults *faults, struct snapshot *snapshot);
size_t faults_stack_bytes(const struct faults *faults);

void faults_skip(struct faults *faults);

/* All records before this time have been taken. */
uint64_t faults_taken_ns(const struct faults *faults);

/* When the process last executed a program, by the records read so far; 0: never. */
uint64_t faults_exec_ns(const struct faults *faults, pid_t process_id);

/* How many pages are chosen now. The rank of a chosen page (filter_page_rank of the seed) has at
 * least as many leading zeros as the level of its group. */
struct page_levels faults_levels(const struct faults *faults);

/* Chooses fewer pages, and does not choose more of them later: too many are known. */
void faults_choose_fewer(struct faults *faults);

/* Whether some faults on chosen pages were not reported, so that for some memory it is not known
 * whether it was used again. */
bool faults_are_rough(const struct faults *faults);

/* How many faults were lost because they were not read in time, or because another profiler's event
 * hid which process they belong to. */
uint64_t faults_lost(const struct faults *faults);

/* Accepts NULL. */
void faults_free(struct faults *faults);

#endif
