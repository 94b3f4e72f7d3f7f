#include "sampler/listing.h"
#include "base/clock.h"
#include "proc/procfs.h"
#include "sampler/naming.h"
#include "sampler/report.h"
#include "sampler/switch_events.h"

#include <errno.h>
#include <unistd.h>

#define MAX_AGE_NS 100000000u
#define LISTED_PER_ROUND 1000 /* this many take about a millisecond */
#define READS_BETWEEN_CLOCK 16
#define PART_OF_TIME 50

/* The context of threads_update's callbacks. */
struct update {
    struct sampler *sampler;
    struct sampled_process *process;
    int err;
};

uint64_t listing_gone_ns(const struct sampler *sampler, const struct sampled_process *process)
{
    uint64_t now_ns = clock_now_ns(&sampler->clock);
    uint64_t listed_ns = process->listing.listed.done_ns, last_ns = process->turns.last_round_ns;
    uint64_t there_ns = listed_ns > last_ns ? listed_ns : last_ns;
    return there_ns < now_ns ? there_ns : now_ns;
}

/* The thread's birth in CLOCK_MONOTONIC, from its start time since boot, which is in units of
 * 10 ms: rounded down, but never before the last listing, which did not show it. */
static uint64_t birth_ns(const struct sampler *sampler, const struct sampled_process *process,
                         pid_t tid)
{
    struct proc_stat stat;
    uint64_t now_ns = monotonic_ns(), listed_ns = process->listing.listed.done_ns;
    if (now_ns - listed_ns < 2 * sampler->clock.ticks.period_ns)
        return listed_ns;
    if (procfs_thread_stat(process->process.proc_fd, tid, &stat))
        return process->turns.last_round_ns;
    uint64_t boot_now_ns = boot_ns();
    uint64_t boot_birth_ns = stat.start_tick * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
    uint64_t age_ns = boot_now_ns > boot_birth_ns ? boot_now_ns - boot_birth_ns : 0;
    uint64_t born_ns = now_ns > age_ns ? now_ns - age_ns : 0;
    return born_ns > listed_ns ? born_ns : listed_ns;
}

/* A thread that is listed for the first time also represents threads that lived and died unseen
 * since the previous listing: it counts as if it had been there all that time. Over many threads,
 * their time is thus counted in full: as many threads go as come, and each listed thread counts for
 * the time between two listings. If rounds skipped the listing because nothing seemed to have
 * changed, its time counts since the previous round, or since its birth. */
static uint64_t unseen_since_ns(const struct sampler *sampler,
                                const struct sampled_process *process, pid_t tid)
{
    uint64_t listed_ns = process->listing.listed.done_ns, last_ns = process->turns.last_round_ns;
    if (listed_ns >= last_ns)
        return listed_ns;
    uint64_t born_ns = birth_ns(sampler, process, tid);
    return born_ns < last_ns ? born_ns : last_ns;
}

/* If the collector reports which thread created which, it is also notified of threads whose birth
 * was not seen. */
static void note_thread(struct update *update, enum notice_kind kind, const struct thread *thread)
{
    const struct sampled_process *process = update->process;
    if (!update->sampler->options->objects.kinds[OBJECT_THREAD])
        return;
    int err =
        report_to_collector(update->sampler, (struct notice){.kind = kind,
                                                             .process = process->objects,
                                                             .tid = thread->tid,
                                                             .is_old = !process->turns.round_ns});
    if (err && !update->err)
        update->err = err;
}

static void thread_appeared(void *context, struct thread *thread)
{
    struct update *update = context;
    struct sampler *sampler = update->sampler;
    struct sampled_process *process = update->process;
    int err = numbers_give(&sampler->numbers, process, thread->tid, &thread->number);
    if (err && !update->err)
        update->err = err;
    sampler->counts.threads_seen++;
    process->listing.changed_ns = process->listing.began_ns;
    thread->idle.has_moved = sampler->counts.ticks_taken > 0;
    note_thread(update, NOTICE_THREAD, thread);
    naming_first(sampler, process, thread);
    if (thread->phase == PHASE_UNWANTED)
        return;
    struct reading begin = {.has_activity = true}; /* at its birth all values were 0 */
    if (!process->turns.round_ns) {
        begin = (struct reading){.at_ns = sampler->clock.ticks.start_ns};
        process->listing.lacks_begins = true;
    } else {
        thread_note(thread, EVENT_BEGIN_READ);
        thread->life.is_new = true;
        begin.at_ns = unseen_since_ns(sampler, process, thread->tid);
    }
    report_begin(thread, &begin);
}

/* The kernel's account of a thread when the recording began. A command also began then. */
static struct reading read_begin(struct sampler *sampler, const struct sampled_process *process,
                                 struct thread *thread)
{
    const struct clock *clock = &sampler->clock;
    struct reading begin = {.has_activity = true};
    if (process->process.pid != sampler->command.pid) {
        begin = thread_read_account(sampler, process, thread);
        sampler->counts.samples_assumed += ticks_period_at(&clock->ticks, begin.at_ns);
        thread->schedule.asleep_since_tick = ticks_until(&clock->ticks, begin.at_ns);
    }
    begin.at_ns = clock->ticks.start_ns;
    return begin;
}

void listing_read_begin(struct sampler *sampler, const struct sampled_process *process,
                        struct thread *thread)
{
    bool lacks_begin = thread->phase == PHASE_LISTED && !thread->life.is_reported;
    thread_note(thread, EVENT_BEGIN_READ);
    if (!lacks_begin)
        return;
    const struct reading begin = read_begin(sampler, process, thread);
    thread->idle.first_switches = begin.has_activity ? begin.activity.switches : 0;
    report_begin(thread, &begin);
}

void listing_read_begins(struct sampler *sampler, struct sampled_process *process,
                         uint64_t until_ns)
{
    struct listing *listing = &process->listing;
    struct threads *threads = &process->threads;
    size_t reads = 0, place = 0;
    if (!listing->lacks_begins)
        return;
    for (place = threads_place_from(threads, listing->next_begin_tid); place < threads->count;
         place++) {
        struct thread *thread = &threads->items[place];
        if (thread->phase != PHASE_LISTED)
            continue;
        if (++reads % READS_BETWEEN_CLOCK == 0 && monotonic_ns() >= until_ns) {
            listing->next_begin_tid = thread->tid;
            return;
        }
        listing_read_begin(sampler, process, thread);
    }
    listing->lacks_begins = false;
}

static void thread_vanished(void *context, struct thread *thread)
{
    struct update *update = context;
    struct sampler *sampler = update->sampler;
    const struct reading until = {.at_ns = listing_gone_ns(sampler, update->process)};
    update->process->listing.changed_ns = update->process->listing.began_ns;
    int err = report_gone(sampler, update->process, thread, &until, false);
    if (err && !update->err)
        update->err = err;
    note_thread(update, NOTICE_THREAD_GONE, thread);
    switch_events_close(sampler, thread);
    /* While the thread is being stopped, its number is still in use; stops.c takes it back. */
    if (thread->phase == PHASE_STOPPING) {
        numbers_withhold(&sampler->numbers, thread->number);
        return;
    }
    watches_forget(&sampler->watches, thread->number);
    numbers_take_back(&sampler->numbers, thread->number);
}

static bool is_due(const struct sampled_process *process, const struct sampler_options *options,
                   uint64_t now_ns)
{
    const struct listing *listing = &process->listing;
    if (!process->threads.count || listing->list.is_partial || listing->is_wanted)
        return true;
    if (process_count_threads(&process->process) != process->threads.count)
        return true;
    /* If one thread goes while another comes, their number stays the same. That is expected if
     * threads have come or gone recently. Otherwise it is noticed when the missing thread is looked
     * at, which is soon, because a thread has run unseen. Unwanted threads are not looked at, and
     * no thread is if time is not recorded. */
    if (now_ns - listing->changed_ns < MAX_AGE_NS)
        return throttle_allows(&listing->listed, now_ns, 0, PART_OF_TIME);
    bool may_be_missed =
        !thread_choice_is_all(&options->choice) && process->activity_check.has_run_unseen;
    return (may_be_missed || options->has_no_time) &&
           throttle_allows(&listing->listed, now_ns, MAX_AGE_NS, PART_OF_TIME);
}

int listing_update(struct sampler *sampler, struct sampled_process *process)
{
    struct listing *listing = &process->listing;
    uint64_t now_ns = monotonic_ns();
    if (!is_due(process, sampler->options, now_ns))
        return 0;
    if (!listing->list.is_partial) {
        listing->is_wanted = false;
        listing->began_ns = now_ns;
        listing->listed.cost_ns = 0;
    }
    uint64_t began_cpu_ns = thread_cpu_ns();
    int err = process_list_threads(&process->process, &listing->list, LISTED_PER_ROUND);
    listing->listed.cost_ns += thread_cpu_ns() - began_cpu_ns;
    /* If there was a listing before, it remains valid until the next tick. */
    if (err && err != -ENOMEM && listing->listed.done_ns) {
        listing->is_wanted = true;
        return 0;
    }
    if (err || listing->list.is_partial)
        return err;
    struct update update = {sampler, process, 0};
    err = threads_update(&process->threads, listing->list.tids, listing->list.count,
                         thread_appeared, thread_vanished, &update);
    listing->listed.done_ns = listing->began_ns;
    return err ? err : update.err;
}

int listing_update_whole(struct sampler *sampler, struct sampled_process *process)
{
    int err;
    do
        err = listing_update(sampler, process);
    while (!err && process->listing.list.is_partial);
    return err;
}
