#include "sampler/target_threads.h"
#include "sampler/target_book.h"
#include "sampler/target_choice.h"
#include "sampler/target_count.h"
#include "base/clock.h"
#include "proc/procfs.h"

#include <unistd.h>

#define LISTING_MAX_AGE_NS 100000000u
#define LISTED_PER_ROUND 2000 /* so many take about two milliseconds */
#define LISTING_PART_OF_TIME 50

/* CLOCK_MONOTONIC of the thread's birth, from its start after boot in units of 10 ms: rounded down,
 * and never before the last listing, which did not show it. */
static uint64_t birth_ns(const struct target *target, pid_t tid)
{
    struct proc_stat stat;
    uint64_t now_ns = monotonic_ns();
    if (now_ns - target->listed_ns < 2 * target->recording->period_ns)
        return target->listed_ns;
    if (procfs_thread_stat(target->process.proc_fd, tid, &stat))
        return target->last_round_ns;
    uint64_t boot_birth_ns = stat.start_tick * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
    uint64_t boot_now_ns = boot_ns();
    uint64_t age_ns = boot_now_ns > boot_birth_ns ? boot_now_ns - boot_birth_ns : 0;
    uint64_t born_ns = now_ns > age_ns ? now_ns - age_ns : 0;
    return born_ns > target->listed_ns ? born_ns : target->listed_ns;
}

/* A thread that is listed for the first time stands for those that came and went unseen since the
 * listing before: it counts as if it had been there all that time. So, over many, their time is
 * counted in full: as many have gone as have come, and what is counted of each that is listed is
 * the time between two listings. Where rounds did without, as nothing seemed to have changed, that
 * is since the round before, or since it was born. */
static uint64_t unseen_since_ns(const struct target *target, pid_t tid)
{
    if (target->listed_ns >= target->last_round_ns)
        return target->listed_ns;
    uint64_t born_ns = birth_ns(target, tid);
    return born_ns < target->last_round_ns ? born_ns : target->last_round_ns;
}

static void thread_appeared(void *context, struct thread *thread)
{
    struct target *target = context;
    struct recording *recording = target->recording;
    recording->threads_seen++;
    target->threads_changed_ns = target->listing_began_ns;
    thread->has_moved = recording->ticks_taken > 0;
    int err = target_choose_first(target, thread);
    if (err)
        recording->error = err;
    if (thread->is_unwanted)
        return;
    if (!target->round_ns) {
        target_book_begin(target, thread, recording->start_ns);
        return;
    }
    thread->is_new = true;
    /* At its birth, all was 0. */
    const struct activity none = {0};
    ledger_begin(&thread->ledger, unseen_since_ns(target, thread->tid), &none);
}

static void thread_vanished(void *context, struct thread *thread)
{
    struct target *target = context;
    target->threads_changed_ns = target->listing_began_ns;
    int err = target_count_end(target, thread, target_book_gone_ns(target), false);
    if (err)
        target->recording->error = err;
}

static bool must_list_threads(const struct target *target, uint64_t now_ns)
{
    uint64_t age_ns = now_ns - target->listed_ns;
    if (!target->threads.count || target->listing.is_partial)
        return true;
    /* One that went while another came leaves their number as it was: where some have come or gone
     * lately, that is to be expected; else it is noticed when it is to be looked at, or here after
     * some time. */
    bool changes = now_ns - target->threads_changed_ns < LISTING_MAX_AGE_NS;
    return target->must_list_threads ||
           process_count_threads(&target->process) != target->threads.count ||
           ((changes || age_ns >= LISTING_MAX_AGE_NS) &&
            age_ns >= LISTING_PART_OF_TIME * target->listing_ns);
}

int target_update_threads(struct target *target)
{
    struct thread_list *listing = &target->listing;
    uint64_t now_ns = monotonic_ns();
    if (!must_list_threads(target, now_ns))
        return 0;
    if (!listing->is_partial) {
        target->must_list_threads = false;
        target->listing_began_ns = now_ns;
        target->listing_ns = 0;
    }
    uint64_t began_cpu_ns = thread_cpu_ns();
    int err = process_list_threads(&target->process, listing, LISTED_PER_ROUND);
    target->listing_ns += thread_cpu_ns() - began_cpu_ns;
    if (err || listing->is_partial)
        return err;
    err = threads_update(&target->threads, listing->tids, listing->count, thread_appeared,
                         thread_vanished, target);
    target->listed_ns = target->listing_began_ns;
    return err ? err : target->recording->error;
}

int target_list_all_threads(struct target *target)
{
    int err;
    do
        err = target_update_threads(target);
    while (!err && target->listing.is_partial);
    return err;
}
