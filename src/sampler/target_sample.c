#include "sampler/target_sample.h"
#include "sampler/target_book.h"
#include "sampler/target_choice.h"
#include "sampler/target_count.h"
#include "sampler/target_space.h"
#include "sampler/target_unwind.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

#define CAPTURE_TRIES_MAX 8 /* of one thread at one tick: with more of its stack, a new map */
#define LOOK_MAX_AGE_NS 100000000u
#define LOOK_PART_OF_SLEEP 32
#define LOOK_FRESH_NS                                                                              \
    100000 /* no older: a thread that it found running is stopped without another */
#define LOOKS_PER_TICK 1000 /* at sleeping threads; so many take about a millisecond */

/* When to look at it again. That a thread has not run since the last look proves all ticks between,
 * so one that sleeps long is looked at less often: what is not known where it moves after all is a
 * small part of the time that it slept. Where there are very many, each is looked at less often
 * from the first. They take turns, so that each tick has its part of them. */
static void schedule_look(const struct target *target, struct thread *thread)
{
    uint64_t longest = LOOK_MAX_AGE_NS / target->recording->period_ns;
    uint64_t wait = (thread->looked_tick - thread->asleep_since_tick) / LOOK_PART_OF_SLEEP;
    uint64_t shortest = target->threads.count / LOOKS_PER_TICK;
    wait = wait < shortest ? shortest : wait;
    wait = wait < longest ? wait : longest;
    thread->is_asleep = true;
    thread->next_look_tick = thread->looked_tick + wait;
    if (wait > 1)
        thread->next_look_tick -= (thread->looked_tick + (uint64_t)thread->tid) % wait;
}

/* It has moved at some time since the last look. What it slept between is counted for where it is
 * found asleep next, which is not known to be so. */
static void note_moved(struct recording *recording, struct thread *thread, uint64_t last_look_tick)
{
    if (thread->is_asleep && thread->looked_tick > last_look_tick + 1)
        recording->samples_assumed += thread->looked_tick - last_look_tick - 1;
    thread->is_asleep = false;
    thread->asleep_since_tick = thread->looked_tick;
    thread->next_look_tick = 0;
}

static bool is_where_it_was_woken(const struct thread *thread, const struct snapshot *snapshot)
{
    return registers_pc(&snapshot->registers) == thread->blocked.pc &&
           registers_sp(&snapshot->registers) == thread->blocked.sp;
}

/* It has not moved as long as it sleeps at the same count of switches. One that a stop has woken is
 * on its way back, which may be long where others want its CPU, until it is found asleep again. */
static void note_move(struct thread *thread, const struct target *target,
                      enum capture_result result)
{
    if (result == CAPTURE_UNMOVED || (thread->was_woken && result != CAPTURE_DONE))
        return;
    bool has_moved = result != CAPTURE_DONE ||
                     (thread->was_woken ? !is_where_it_was_woken(thread, target->snapshot)
                                        : target->look.activity.switches != thread->first_switches);
    thread->has_moved = thread->has_moved || has_moved;
    if (result != CAPTURE_DONE)
        return;
    thread->first_switches = target->look.activity.switches;
    thread->was_woken = false;
}

/* The same of one that a stop found, because it ran or to read its registers. */
static void note_stop(struct thread *thread, const struct pending_stop *stop)
{
    if (!stop->capture.request.blocked.pc && !thread->was_woken)
        return;
    thread->was_woken = is_where_it_was_woken(thread, &stop->snapshot);
    thread->has_moved = thread->has_moved || !thread->was_woken;
}

/* A leader that had exited while others ran is there again when one of them executes a program,
 * which makes that one the leader (execve(2)). */
static void revive(struct thread *thread)
{
    if (!thread->has_exited)
        return;
    thread->has_exited = false;
    thread->ledger = (struct ledger){.booked_ns = thread->gone_ns};
}

void target_note_exit(struct target *target, const struct stop *stop)
{
    if (stop->exited && stop->tid == target->process.pid) {
        target->has_exit_status = true;
        target->exit_status = stop->exit_status;
    }
}

static int count_gone(struct target *target, struct thread *thread, bool was_running)
{
    uint64_t now_ns = recording_now_ns(target->recording);
    target->must_list_threads = target->must_list_threads || !thread->has_exited;
    uint64_t until_ns =
        was_running ? target_book_seen_ns(target, thread) : target_book_gone_ns(target);
    int err = target_count_end(target, thread, until_ns, was_running);
    thread->gone_ns = thread->has_exited ? now_ns : thread->ledger.booked_ns;
    thread->has_exited = true;
    return err;
}

/* It is stopped when its turn comes; what the look said is needed then. */
static void ask_for_stop(struct target *target, struct thread *thread)
{
    thread->looked_ns = monotonic_ns();
    thread->looked_awake_ns = target->recording->awake_ns;
    thread->has_looked_activity = target->look.has_activity;
    thread->looked_activity = target->look.activity;
    target->stops_left += !thread->needs_stop;
    thread->needs_stop = true;
}

/* Unwinds and counts the snapshot at hand. -EAGAIN where it is to be taken anew; by a stop, if the
 * thread is marked so. */
static int sample(struct target *target, struct thread *thread)
{
    int err = -EAGAIN;
    /* Another program's stack would be read with this one's maps: the next round has both right. */
    if (target_space_is_current(target))
        err = target_unwind(target, thread);
    else
        thread->tries = CAPTURE_TRIES_MAX;
    if (err) {
        /* That it has not moved says something only of a snapshot that was counted. */
        thread_forget_sleep(thread);
        return err;
    }
    revive(thread);
    err = target_name_sampled(target, thread);
    return err || thread->is_unwanted ? err : target_count(target, thread);
}

static struct capture_request request_of(const struct target *target, const struct thread *thread)
{
    return (struct capture_request){
        .process_id = target->process.pid,
        .tid = thread->tid,
        .proc_fd = target->process.proc_fd,
        .stack_areas = &target->stack_areas,
        .stack_limit = thread->stack_limit,
        .other_stack = thread->other_stack,
        .keep_fds_below = target->recording->keep_fds_below,
        .wants_kernel_stack = target->options->has_kernel_stacks,
        .awake_ns = target->recording->awake_ns,
    };
}

/* One that runs is to be stopped, unless that would cost it too much: then what it runs until it is
 * sampled next is counted for that. */
static void find_running(struct target *target, struct thread *thread)
{
    const struct capture *look = &target->look;
    bool has_times = look->has_activity && !look->activity.counts_ends;
    uint64_t running_ns =
        has_times ? look->activity.running_ns : recording_now_ns(target->recording);
    thread->is_asleep = false;
    /* What it did until now is known; of the time until it is sampled, only by this. */
    if (has_times)
        target_book(target, thread, ACCOUNT_RUNNING);
    if (pause_budget_allows(&thread->pause_budget, running_ns, target->options->max_pause_percent))
        ask_for_stop(target, thread);
    else
        target->recording->samples_thinned++;
}

static int look_once(struct target *target, struct thread *thread, uint64_t last_look_tick)
{
    const struct capture_request request = request_of(target, thread);
    target->capture = &target->look;
    target->snapshot = &target->look_snapshot;
    enum capture_result result =
        capture_look(&target->look, &request, &thread->watch, target->snapshot);
    if (result != CAPTURE_GONE && !thread->watch.schedstat.fd_plus_1)
        target->recording->lacks_files = true;
    if (result != CAPTURE_GONE)
        target_book_first_look(target, thread);
    note_move(thread, target, result);
    switch (result) {
    case CAPTURE_UNMOVED:
        target_count_unmoved(target, thread);
        schedule_look(target, thread);
        return target_name_unmoved(target, thread, last_look_tick);
    case CAPTURE_DONE:
        note_moved(target->recording, thread, last_look_tick);
        return sample(target, thread);
    case CAPTURE_RUNNING:
        note_moved(target->recording, thread, last_look_tick);
        find_running(target, thread);
        return 0;
    case CAPTURE_GONE:
        return count_gone(target, thread, false);
    default:
        return target_count_not_captured(target, thread);
    }
}

int target_look(struct target *target, struct thread *thread, uint64_t tick)
{
    int err = target_choose_again(target, thread, tick);
    if (err || thread->is_unwanted)
        return err;
    uint64_t last_look_tick = thread->looked_tick;
    thread->looked_tick = tick;
    thread->tries = 0;
    thread->must_stop = false;
    do
        err = look_once(target, thread, last_look_tick);
    while (err == -EAGAIN && !thread->must_stop && ++thread->tries < CAPTURE_TRIES_MAX);
    if (err == -EAGAIN && thread->must_stop)
        ask_for_stop(target, thread);
    return err == -EAGAIN ? 0 : err;
}

int target_begin_stop(struct target *target, struct thread *thread)
{
    struct recording *recording = target->recording;
    struct capture_request request = request_of(target, thread);
    struct capture look = {.activity = thread->looked_activity,
                           .has_activity = thread->has_looked_activity,
                           .syscall_number = -1};
    request.awake_ns = thread->looked_awake_ns;
    if (thread->must_stop)
        request.blocked = thread->blocked;
    thread->must_stop = false;
    /* Where others had their turn before, it may have gone to sleep since, maybe in another call.
     * It is looked at again at the next tick. */
    bool is_fresh = monotonic_ns() - thread->looked_ns < LOOK_FRESH_NS;
    if (!(is_fresh && !request.blocked.pc) && !capture_must_stop(&request, &thread->watch))
        return 0;
    switch (stops_add(&target->stops, recording->reaper, &request, &look)) {
    case CAPTURE_PENDING:
        thread->is_stopping = true;
        return 0;
    case CAPTURE_GONE:
        return count_gone(target, thread, true);
    default:
        return target_count_not_captured(target, thread);
    }
}

/* Counts what a stop brought. */
static int take_in(struct target *target, struct thread *thread, struct pending_stop *stop)
{
    if (stop->result == CAPTURE_GONE)
        return count_gone(target, thread, true);
    if (stop->result != CAPTURE_DONE)
        return target_count_not_captured(target, thread);
    target->capture = &stop->capture;
    target->snapshot = &stop->snapshot;
    capture_conclude(&stop->capture, &thread->watch, &stop->snapshot);
    note_stop(thread, stop);
    if (stop->capture.state != THREAD_STOPPED && !stop->capture.request.blocked.pc) {
        histogram_add(&target->recording->pauses, stop->capture.pause_ns);
        pause_budget_spend(&thread->pause_budget, stop->capture.pause_ns);
    }
    int err = sample(target, thread);
    if (err == -EAGAIN && !stop->capture.request.blocked.pc &&
        ++thread->tries < CAPTURE_TRIES_MAX) {
        target->stops_left += !thread->needs_stop;
        thread->needs_stop = true;
    }
    return err == -EAGAIN ? 0 : err;
}

int target_end_stop(struct target *target, struct pending_stop *stop)
{
    struct thread *thread = threads_find(&target->threads, stop->capture.request.tid);
    target_note_exit(target, &stop->capture.stop);
    /* It has gone from the list meanwhile: nobody's time is left to count. */
    if (!thread)
        return 0;
    thread->is_stopping = false;
    return take_in(target, thread, stop);
}
