#include "recorder/target.h"
#include "recorder/target_sample.h"
#include "recorder/target_space.h"
#include "target/procfs.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LISTING_MAX_AGE_NS 100000000u
#define MAPS_MAX_AGE_NS 1000000000u

int target_open(struct target *target, pid_t pid, struct recording *recording,
                const struct fgprof_options *options)
{
    *target =
        (struct target){.recording = recording, .options = options, .mem_fd = -1, .maps_fd = -1};
    return process_open(pid, &target->process);
}

void target_close(struct target *target)
{
    target_space_close(target);
    threads_free(&target->threads);
    snapshot_free(&target->snapshot);
    sites_free(&target->sites);
    stack_areas_free(&target->stack_areas);
    free(target->stack.addresses);
    process_close(&target->process);
}

/* CLOCK_MONOTONIC of the thread's birth, from its start after boot in units of 10 ms: rounded down,
 * and never before the last listing, which did not show it. */
static uint64_t birth_ns(const struct target *target, pid_t tid)
{
    struct proc_stat stat;
    struct timespec boot;
    uint64_t now_ns = monotonic_ns();
    if (now_ns - target->listed_ns < 2 * target->recording->period_ns ||
        procfs_thread_stat(target->process.proc_fd, tid, &stat) ||
        clock_gettime(CLOCK_BOOTTIME, &boot))
        return target->listed_ns;
    uint64_t boot_now_ns = (uint64_t)boot.tv_sec * 1000000000u + (uint64_t)boot.tv_nsec;
    uint64_t boot_birth_ns = stat.start_tick * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
    uint64_t age_ns = boot_now_ns > boot_birth_ns ? boot_now_ns - boot_birth_ns : 0;
    uint64_t born_ns = now_ns > age_ns ? now_ns - age_ns : 0;
    return born_ns > target->listed_ns ? born_ns : target->listed_ns;
}

static void thread_appeared(void *context, struct thread *thread)
{
    struct target *target = context;
    struct recording *recording = target->recording;
    recording->threads_seen++;
    if (!target->round_ns) {
        thread->counted_ns = recording->start_ns;
        return;
    }
    thread->counted_ns = birth_ns(target, thread->tid);
    /* A thread that is seen has been there for the tick that sees it. */
    uint64_t tick = recording_tick_at(recording, target->round_ns);
    thread->counted_tick = recording_tick_at(recording, thread->counted_ns);
    if (thread->counted_tick >= tick)
        thread->counted_tick = tick ? tick - 1 : 0;
}

static void thread_vanished(void *context, struct thread *thread)
{
    struct target *target = context;
    /* It went at some time since it was last seen. */
    uint64_t now_ns = recording_now_ns(target->recording);
    uint64_t until_ns = thread->counted_ns + (now_ns - thread->counted_ns) / 2;
    int err = now_ns > thread->counted_ns ? target_count_lost(target, thread, until_ns) : 0;
    if (err)
        target->recording->error = err;
}

static int update_threads(struct target *target)
{
    struct threads *threads = &target->threads;
    uint64_t now_ns = monotonic_ns();
    /* One that went while another came leaves their number as it was: it is noticed when it is to
     * be looked at, or here after some time. */
    if (!target->must_list_threads && threads->count &&
        now_ns - target->listed_ns < LISTING_MAX_AGE_NS &&
        process_count_threads(&target->process) == threads->count)
        return 0;
    target->must_list_threads = false;
    ssize_t count = process_list_threads(&target->process, &threads->tids, &threads->tid_capacity);
    if (count < 0)
        return (int)count;
    int err = threads_update(threads, (size_t)count, thread_appeared, thread_vanished, target);
    target->listed_ns = now_ns;
    return err ? err : target->recording->error;
}

int target_start(struct target *target)
{
    int err = update_threads(target);
    if (err)
        return err;
    target->last_round_ns = target->round_ns = target->recording->start_ns;
    err = target_space_update(target);
    return err == -ENOMEM ? err : 0;
}

/* Whether any thread still lives: a zombie keeps its leader in the list until its parent takes
 * note. One with a program can only have exited since; without one, it is to be looked at. */
static bool has_live_thread(struct target *target)
{
    for (size_t i = 0; target->space && i < target->threads.count; i++) {
        if (!target->threads.items[i].has_exited)
            return true;
    }
    return process_live_thread(&target->process) != 0;
}

static int look_at_all(struct target *target)
{
    int err = 0;
    target->stops_left = 0;
    for (size_t i = 0; i < target->threads.count && !err; i++) {
        struct thread *thread = &target->threads.items[i];
        if (!target->space)
            err = target_count_lost(target, thread, recording_now_ns(target->recording));
        else if (!target->is_pending || thread->tid != target->pending_tid)
            err = target_look(target, thread);
    }
    return err;
}

int target_begin_round(struct target *target)
{
    if (target->has_exited)
        return 0;
    target->last_round_ns = target->round_ns;
    target->round_ns = monotonic_ns();
    int err = update_threads(target);
    if (err)
        return err;
    err = target_space_update(target);
    if (!target->is_pending && !has_live_thread(target)) {
        target->has_exited = true;
        return 0;
    }
    bool changed;
    if (!err && target->round_ns - target->maps_read_ns >= MAPS_MAX_AGE_NS)
        err = target_space_refresh(target, &changed);
    return err == -ENOMEM ? err : look_at_all(target);
}

/* The next thread, from where the round is, that is to be stopped. */
static struct thread *next_to_stop(struct target *target)
{
    struct threads *threads = &target->threads;
    size_t place = threads_place_from(threads, target->next_tid);
    for (size_t i = 0; i < threads->count; i++) {
        struct thread *thread = &threads->items[(place + i) % threads->count];
        if (thread->needs_stop)
            return thread;
    }
    return NULL;
}

int target_continue_round(struct target *target)
{
    if (target->is_pending && !threads_find(&target->threads, target->pending_tid))
        target_collect_vanished(target);
    while (target->is_pending || target->stops_left) {
        struct thread *thread = target->is_pending
                                    ? threads_find(&target->threads, target->pending_tid)
                                    : next_to_stop(target);
        if (!thread)
            return 0;
        int err = target_stop_and_sample(target, thread);
        if (err || target->is_pending)
            return err;
        target->next_tid = thread->tid + 1;
        target->stops_left -= thread->needs_stop;
        thread->needs_stop = false;
    }
    return 0;
}

int target_finish(struct target *target)
{
    int err = 0;
    for (size_t i = 0; i < target->threads.count && !err; i++)
        err = target_count_lost(target, &target->threads.items[i], target->recording->end_ns);
    return err;
}
