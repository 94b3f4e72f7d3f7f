#include "recorder/target_sample.h"
#include "recorder/target_space.h"
#include "recorder/target_unwind.h"
#include "target/procfs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CAPTURE_TRIES_MAX 8 /* of one thread at one tick: with more of its stack, a new map */
#define LOOK_MAX_AGE_NS 100000000u
#define LOOK_PART_OF_SLEEP 32
#define NAME_MAX_AGE 128 /* samples between two looks at a thread's name */

/* Threads are named soon after they were born, and seldom later: the name is read at the first
 * samples, then ever less often. */
static int update_name(struct target *target, struct thread *thread)
{
    uint64_t age = thread->samples_taken++;
    if ((age & (age - 1)) != 0 && age % NAME_MAX_AGE != 0)
        return 0;
    char path[48], name[64];
    snprintf(path, sizeof path, "task/%d/comm", thread->tid);
    ssize_t length = procfs_read(target->process.proc_fd, path, name, sizeof name);
    if (length <= 0)
        return 0;
    if (name[length - 1] == '\n')
        name[length - 1] = '\0';
    return strings_intern(&target->recording->strings, name, &thread->name);
}

static void note_counted(struct recording *recording, struct thread *thread, uint64_t tick,
                         uint64_t now_ns, enum stack_cut cut)
{
    recording->samples += tick - thread->counted_tick;
    if (cut != STACK_WHOLE)
        recording->samples_cut += tick - thread->counted_tick;
    thread->counted_tick = tick;
    thread->counted_ns = now_ns;
}

/* Returns 0 or -ENOMEM. */
static int label(const struct target *target, const struct thread *thread, bool is_captured,
                 struct sample_labels *ret_labels)
{
    const struct capture *capture = target->current;
    struct sample_labels labels = {
        .thread_name = thread->name,
        .tid = target->options->threads == FGPROF_THREADS_BY_ID ? (uint32_t)thread->tid : 0,
        .state = is_captured ? capture->state : THREAD_UNKNOWN,
        .syscall_number = -1,
    };
    if (thread_state_waits(labels.state)) {
        labels.syscall_number = (int32_t)capture->syscall_number;
        if (strings_intern(&target->recording->strings, capture->wait_channel,
                           &labels.wait_channel))
            return -ENOMEM;
    }
    *ret_labels = labels;
    return 0;
}

/* Counts all that is outstanding for the thread, up to now, for target->stack. */
static int count(struct target *target, struct thread *thread, uint64_t now_ns)
{
    struct recording *recording = target->recording;
    uint64_t tick = recording_tick_at(recording, now_ns);
    if (tick <= thread->counted_tick || now_ns < thread->counted_ns)
        return 0; /* counted already, or born after the end */
    uint64_t ticks = tick - thread->counted_tick;
    uint64_t time_ns = now_ns - thread->counted_ns;
    bool is_captured = target->stack.cut != STACK_CUT_NOT_CAPTURED;
    uint32_t space = is_captured ? target->space->id : NO_SPACE;
    struct sample_labels labels;
    int err = label(target, thread, is_captured, &labels);
    if (!err)
        err = stack_table_add(&recording->stacks, space, &target->stack, &labels, ticks, time_ns,
                              &thread->last_sample);
    if (err)
        return err;
    note_counted(recording, thread, tick, now_ns, target->stack.cut);
    if (!is_captured) {
        recording->samples_not_captured += ticks;
    } else if (target->current->was_running) {
        recording->running_ns += time_ns;
        histogram_add(&recording->pauses, target->current->pause_ns);
    }
    return 0;
}

/* Counts the same again for a thread that has slept since. */
static void count_unmoved(struct recording *recording, struct thread *thread, uint64_t now_ns)
{
    uint64_t tick = recording_tick_at(recording, now_ns);
    struct stack_table *stacks = &recording->stacks;
    if (tick <= thread->counted_tick || now_ns < thread->counted_ns)
        return;
    stack_table_count(stacks, thread->last_sample, tick - thread->counted_tick,
                      now_ns - thread->counted_ns);
    const struct counted_sample *sample = &stacks->samples[thread->last_sample];
    note_counted(recording, thread, tick, now_ns, stacks->stacks[sample->stack].cut);
}

/* When to look at it again. That a thread has not run since the last look proves all ticks between,
 * so one that sleeps long is looked at less often: what is not known where it moves after all is a
 * small part of the time that it slept. */
static void schedule_look(const struct recording *recording, struct thread *thread)
{
    uint64_t longest = LOOK_MAX_AGE_NS / recording->period_ns;
    uint64_t wait = (thread->counted_tick - thread->asleep_since_tick) / LOOK_PART_OF_SLEEP;
    thread->is_asleep = true;
    thread->next_look_tick = thread->counted_tick + (wait < longest ? wait : longest);
}

/* It has moved at some time since the last look. What lies between is counted for where it is now,
 * which is not known to be so. */
static void note_moved(struct recording *recording, struct thread *thread, uint64_t now_ns)
{
    uint64_t tick = recording_tick_at(recording, now_ns);
    if (thread->is_asleep && tick > thread->counted_tick + 1)
        recording->samples_assumed += tick - thread->counted_tick - 1;
    thread->is_asleep = false;
    thread->asleep_since_tick = tick;
    thread->next_look_tick = 0;
}

/* A leader that had exited while others ran is there again when one of them executes a program,
 * which makes that one the leader (execve(2)). */
static void revive(const struct target *target, struct thread *thread)
{
    if (!thread->has_exited)
        return;
    thread->has_exited = false;
    thread->counted_ns = target->last_round_ns;
    thread->counted_tick = recording_tick_at(target->recording, target->last_round_ns);
}

static int count_not_captured(struct target *target, struct thread *thread, uint64_t until_ns)
{
    thread_forget_sleep(thread);
    target->stack.depth = 0;
    target->stack.cut = STACK_CUT_NOT_CAPTURED;
    return count(target, thread, until_ns);
}

int target_count_lost(struct target *target, struct thread *thread, uint64_t until_ns)
{
    struct recording *recording = target->recording;
    if (thread->has_exited || until_ns < thread->counted_ns + 2 * recording->period_ns)
        return 0;
    if (!thread->is_asleep)
        return count_not_captured(target, thread, until_ns);
    note_moved(recording, thread, until_ns);
    count_unmoved(recording, thread, until_ns);
    return 0;
}

static int unwind_and_count(struct target *target, struct thread *thread)
{
    int err = target_unwind(target, thread);
    if (err)
        return err;
    revive(target, thread);
    err = update_name(target, thread);
    return err ? err : count(target, thread, recording_now_ns(target->recording));
}

/* Captures, or goes on with it. */
static enum capture_result take_snapshot(struct target *target, struct thread *thread,
                                         bool may_stop)
{
    struct capture *capture = may_stop ? &target->capture : &target->look;
    target->current = capture;
    if (target->is_pending && may_stop)
        return capture_collect(capture, &target->snapshot);
    struct capture_request request = {
        .process_id = target->process.pid,
        .tid = thread->tid,
        .proc_fd = target->process.proc_fd,
        .stack_areas = &target->stack_areas,
        .stack_limit = thread->stack_limit,
        .keep_fds_below = target->recording->keep_fds_below,
        .may_stop = may_stop,
        .must_stop = thread->must_stop,
        .awake_ns = target->recording->awake_ns,
    };
    thread->must_stop = thread->must_stop && !may_stop;
    return capture_thread(capture, &request, &thread->watch, &target->snapshot);
}

static void note_exit(struct target *target)
{
    const struct stop *stop = &target->capture.stop;
    if (stop->exited && stop->tid == target->process.pid) {
        target->has_exit_status = true;
        target->exit_status = stop->exit_status;
    }
}

static int sample_once(struct target *target, struct thread *thread, bool may_stop)
{
    enum capture_result result = take_snapshot(target, thread, may_stop);
    uint64_t now_ns = recording_now_ns(target->recording);
    target->is_pending = target->is_pending && !may_stop;
    switch (result) {
    case CAPTURE_PENDING:
        target->is_pending = true;
        target->pending_tid = thread->tid;
        return 0;
    case CAPTURE_RUNNING:
        thread->needs_stop = true;
        target->stops_left++;
        return 0;
    case CAPTURE_UNMOVED:
        count_unmoved(target->recording, thread, now_ns);
        schedule_look(target->recording, thread);
        return 0;
    case CAPTURE_GONE:
        note_exit(target);
        target->must_list_threads = target->must_list_threads || !thread->has_exited;
        int err = target_count_lost(target, thread, now_ns);
        thread->has_exited = true;
        return err;
    case CAPTURE_REFUSED:
        break;
    case CAPTURE_DONE:
        /* Another program's stack would be read with this one's maps: the next round has both
         * right. */
        if (!target_space_is_current(target))
            break;
        note_moved(target->recording, thread, now_ns);
        return unwind_and_count(target, thread);
    }
    return target_count_lost(target, thread, now_ns);
}

static int sample(struct target *target, struct thread *thread, bool may_stop)
{
    uint64_t before = thread->counted_tick;
    int err, tries = 0;
    do {
        err = sample_once(target, thread, may_stop);
        /* That it has not moved says something only of a snapshot that was counted. */
        if (thread->counted_tick == before)
            thread_forget_sleep(thread);
    } while (err == -EAGAIN && !target->is_pending && ++tries < CAPTURE_TRIES_MAX);
    return err == -EAGAIN ? 0 : err;
}

int target_look(struct target *target, struct thread *thread)
{
    bool is_last = target->recording->end_ns != 0;
    uint64_t tick = recording_tick_at(target->recording, recording_now_ns(target->recording));
    thread->needs_stop = false;
    /* Counted by a round that ended late, or not yet due. */
    if (tick <= thread->counted_tick || (tick < thread->next_look_tick && !is_last))
        return 0;
    return sample(target, thread, false);
}

int target_stop_and_sample(struct target *target, struct thread *thread)
{
    return sample(target, thread, true);
}

void target_collect_vanished(struct target *target)
{
    enum capture_result result = capture_collect(&target->capture, &target->snapshot);
    target->is_pending = result == CAPTURE_PENDING;
    note_exit(target);
}
