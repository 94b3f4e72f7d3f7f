#include "sampler/target.h"
#include "sampler/idle.h"
#include "sampler/target_book.h"
#include "sampler/target_count.h"
#include "sampler/target_jit.h"
#include "sampler/target_sample.h"
#include "sampler/target_space.h"
#include "sampler/target_threads.h"
#include "base/clock.h"
#include "proc/priority.h"
#include "proc/procfs.h"

#include <errno.h>
#include <stdlib.h>

#define MAPS_MAX_AGE_NS 1000000000u
/* With very many threads, each with a stack, maps has as many lines. */
#define MAPS_PART_OF_TIME 100
#define LOOKS_PART_OF_PERIOD 5
#define LOOKS_BETWEEN_CLOCK 16
/* A thread on a CPU stops within about 30 us: looking for that long without sleeping keeps its
 * pause short. After that it is waiting for a CPU, maybe for ours. */
#define SPIN_NS 40000

/* As it is called now: target_sample.c keeps the name up to date. */
static int add_process(struct target *target)
{
    struct recording *recording = target->recording;
    char name[THREAD_NAME_BYTES];
    uint32_t id;
    procfs_thread_name(target->process.proc_fd, target->process.pid, name);
    int err = strings_intern(&recording->strings, name, &id);
    return err ? err
               : stack_table_add_process(&recording->stacks, target->process.pid, id,
                                         &target->number);
}

int target_open(struct target *target, pid_t pid, struct recording *recording,
                const struct sampling_options *options)
{
    *target =
        (struct target){.recording = recording, .options = options, .mem_fd = -1, .maps_fd = -1};
    int err = process_open(pid, &target->process);
    if (err)
        return err;
    err = add_process(target);
    if (err)
        process_close(&target->process);
    return err;
}

void target_close(struct target *target)
{
    target_space_close(target);
    threads_free(&target->threads);
    thread_list_free(&target->listing);
    stops_free(&target->stops);
    snapshot_free(&target->look_snapshot);
    sites_free(&target->sites);
    stack_areas_free(&target->stack_areas);
    free(target->stack.addresses);
    process_close(&target->process);
}

int target_start(struct target *target)
{
    int err = target_list_all_threads(target);
    if (err)
        return err;
    target->last_round_ns = target->round_ns = target->recording->start_ns;
    err = target_space_update(target);
    return err == -ENOMEM ? err : 0;
}

int target_join(struct target *target, uint64_t unseen_ns, uint64_t looked_ns)
{
    target->listed_ns = unseen_ns;
    target->last_round_ns = target->round_ns = looked_ns;
    return target_list_all_threads(target);
}

/* Whether any thread still lives: a zombie keeps its leader in the list until its parent takes
 * note. One with a program can only have exited since; without one, it is to be looked at. */
static bool has_live_thread(struct target *target)
{
    for (size_t i = 0; target->space && i < target->threads.count; i++) {
        if (thread_is_counted(&target->threads.items[i]))
            return true;
    }
    return process_live_thread(&target->process) != 0;
}

/* Not one that was looked at by a round that ended late, or whose turn is later. */
static bool is_due(const struct recording *recording, const struct thread *thread, uint64_t tick)
{
    bool has_turn = recording->looks_at_all || tick >= thread->next_look_tick;
    return tick > thread->looked_tick && has_turn && !thread->is_stopping && !thread->needs_stop;
}

/* From where the round before left off: where there are more threads than can be looked at in a
 * part of the time between ticks, the others have their turn at the next. At the end none is left
 * out. */
static int look_at_all(struct target *target)
{
    const struct recording *recording = target->recording;
    struct threads *threads = &target->threads;
    bool is_last = recording->end_ns != 0;
    uint64_t tick = recording_tick_at(recording, recording_now_ns(recording));
    uint64_t until_ns = target->round_ns + recording->period_ns / LOOKS_PART_OF_PERIOD;
    size_t place = threads_place_from(threads, target->next_look_tid), looks = 0;
    int err = 0;
    for (size_t i = 0; i < threads->count && !err; i++, place++) {
        if (place == threads->count)
            place = 0;
        struct thread *thread = &threads->items[place];
        bool is_done = recording->waits && ledger_has_sample(&thread->ledger);
        bool is_last_look = is_last && !thread->is_stopping && !thread->is_unwanted && !is_done;
        if (!is_due(recording, thread, tick) && !is_last_look)
            continue;
        if (++looks % LOOKS_BETWEEN_CLOCK == 0 && !is_last && monotonic_ns() >= until_ns) {
            target->next_look_tid = thread->tid;
            break;
        }
        err = target->space ? target_look(target, thread, tick)
                            : target_count_not_captured(target, thread);
    }
    return err;
}

static void await_dying_leader(struct target *target)
{
    struct stops *stops = &target->stops;
    if (!stops->has_dying_leader || !stop_end(&stops->dying_leader))
        return;
    stops->has_dying_leader = false;
    target_note_exit(target, &stops->dying_leader);
}

/* Its time ends here, also where nobody has taken note of its end yet, and its first thread is a
 * zombie for long. */
static int end_target(struct target *target)
{
    int err = 0;
    target->has_exited = true;
    for (size_t i = 0; i < target->threads.count && !err; i++) {
        struct thread *thread = &target->threads.items[i];
        err = target_count_end(target, thread, target_book_gone_ns(target), false);
        thread->has_exited = true;
    }
    return err;
}

/* Not those that this round has read already, of a new program. */
static bool are_maps_old(const struct target *target)
{
    if (target->maps_read_ns > target->round_ns)
        return false;
    uint64_t age_ns = target->round_ns - target->maps_read_ns;
    return age_ns >= MAPS_MAX_AGE_NS && age_ns >= MAPS_PART_OF_TIME * target->maps_reading_ns;
}

int target_begin_round(struct target *target)
{
    await_dying_leader(target);
    if (target->has_exited)
        return 0;
    target->last_round_ns = target->round_ns;
    target->round_ns = monotonic_ns();
    stops_drop_dead_leader(&target->stops, target->recording->reaper, target->process.proc_fd);
    int err = target_update_threads(target);
    if (err)
        return err;
    err = target_space_update(target);
    if (!target->stops.count && !has_live_thread(target))
        return end_target(target);
    bool changed;
    if (!err && are_maps_old(target))
        err = target_space_refresh(target, &changed);
    if (err != -ENOMEM)
        err = target_jit_update(target);
    err = err == -ENOMEM ? err : look_at_all(target);
    /* One has gone, and so another may have come that was not looked for: their number had not
     * changed. */
    bool has_listed = target->listed_ns >= target->round_ns;
    if (!err && target->must_list_threads && !has_listed && !target->listing.is_partial) {
        err = target_update_threads(target);
        if (!err)
            err = look_at_all(target);
    }
    return err;
}

/* The next thread, from where the last left off, that is to be stopped. */
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

static int begin_stops(struct target *target)
{
    int err = 0;
    while (target->stops_left && target->stops.count < STOPS_MAX && !err) {
        struct thread *thread = next_to_stop(target);
        if (!thread) {
            target->stops_left = 0; /* they have gone */
            break;
        }
        target->next_tid = thread->tid + 1;
        target->stops_left--;
        thread->needs_stop = false;
        err = target_begin_stop(target, thread);
    }
    return err;
}

/* Counts all that have been collected. That may take long, where code is seen for the first time:
 * who stops meanwhile is let go in between. */
static int end_stops(struct target *target)
{
    struct recording *recording = target->recording;
    int err = 0;
    for (size_t i = 0; i < target->stops.count && !err;) {
        if (target->stops.items[i].result == CAPTURE_PENDING) {
            i++;
            continue;
        }
        err = target_end_stop(target, &target->stops.items[i]);
        stops_remove(&target->stops, i);
        stops_collect(&target->stops, recording->reaper, recording->stop_heard_ns);
    }
    return err;
}

int target_continue_round(struct target *target)
{
    struct recording *recording = target->recording;
    struct stops *stops = &target->stops;
    uint64_t look_until_ns = 0;
    int err = 0;
    while (!err && (stops->count || target->stops_left)) {
        bool has_new = target->stops_left > 0 && stops->count < STOPS_MAX;
        err = begin_stops(target);
        if (err || !stops->count)
            break;
        /* From here on they wait for us, who must not wait for others. */
        priority_run_first(&recording->runs_first);
        stops_interrupt(stops);
        bool has_collected = stops_collect(stops, recording->reaper, recording->stop_heard_ns) > 0;
        if (has_collected)
            err = end_stops(target);
        uint64_t now_ns = monotonic_ns();
        if (has_new || has_collected)
            look_until_ns = now_ns + SPIN_NS;
        if (now_ns >= look_until_ns)
            break;
    }
    return err;
}

bool target_lacks_sample(const struct target *target)
{
    for (size_t i = 0; target->space && i < target->threads.count; i++) {
        const struct thread *thread = &target->threads.items[i];
        if (thread_is_counted(thread) && !thread->is_stopping &&
            !ledger_has_sample(&thread->ledger))
            return true;
    }
    return false;
}

int target_finish(struct target *target)
{
    int err = 0;
    await_dying_leader(target);
    uint64_t end_ns = target->recording->end_ns;
    for (size_t i = 0; i < target->threads.count && !err; i++) {
        struct thread *thread = &target->threads.items[i];
        /* One that is asked to stop and has not, has not run since. */
        if (thread->is_stopping)
            err = target_count_not_captured(target, thread);
        if (!err)
            err = target_count_end(target, thread, end_ns, true);
        if (!err && target->options->drops_idle)
            err = idle_note(target->recording, thread);
    }
    int jit_err = target_jit_finish(target);
    return err ? err : jit_err;
}
