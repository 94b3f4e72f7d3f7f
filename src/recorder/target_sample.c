#include "recorder/target_sample.h"
#include "recorder/target_space.h"
#include "target/procfs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define STACK_LIMIT_MIN (16u << 10)
#define STACK_LIMIT_MAX (256u << 20)
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
    return strings_intern(&target->recording->thread_names, name, &thread->name);
}

/* Counts all that is outstanding for the thread, up to now, for target->stack. */
static int count(struct target *target, struct thread *thread)
{
    struct recording *recording = target->recording;
    uint64_t now_ns = recording_now_ns(recording);
    uint64_t tick = recording_tick_at(recording, now_ns);
    if (tick <= thread->counted_tick || now_ns < thread->counted_ns)
        return 0; /* counted already, or born after the end */
    uint64_t ticks = tick - thread->counted_tick;
    uint64_t time_ns = now_ns - thread->counted_ns;
    bool is_captured = target->stack.cut != STACK_CUT_NOT_CAPTURED;
    uint32_t space = is_captured ? target->space->id : NO_SPACE;
    uint32_t tid = target->options->threads == FGPROF_THREADS_BY_ID ? (uint32_t)thread->tid : 0;
    int err = stack_table_add(&recording->stacks, space, &target->stack, thread->name, tid, ticks,
                              time_ns);
    if (err)
        return err;
    thread->counted_tick = tick;
    thread->counted_ns = now_ns;
    recording->samples += ticks;
    if (target->stack.cut != STACK_WHOLE)
        recording->samples_cut += ticks;
    if (!is_captured) {
        recording->samples_not_captured += ticks;
    } else if (target->capture.state == 'R') {
        recording->running_ns += time_ns;
        histogram_add(&recording->pauses, target->capture.pause_ns);
    }
    return 0;
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

static int count_not_captured(struct target *target, struct thread *thread)
{
    target->stack.depth = 0;
    target->stack.cut = STACK_CUT_NOT_CAPTURED;
    return count(target, thread);
}

int target_count_lost(struct target *target, struct thread *thread)
{
    uint64_t until_ns = recording_now_ns(target->recording);
    if (thread->has_exited || until_ns < thread->counted_ns + 2 * target->recording->period_ns)
        return 0;
    return count_not_captured(target, thread);
}

/* Sizes the next copy by what this one needed, with some room. */
static void adjust_stack_limit(struct thread *thread, size_t used)
{
    size_t wanted = used * 2;
    if (wanted < STACK_LIMIT_MIN)
        wanted = STACK_LIMIT_MIN;
    if (wanted > STACK_LIMIT_MAX)
        wanted = STACK_LIMIT_MAX;
    thread->stack_limit = wanted;
}

/* Unwinds the snapshot, if need be a second time with maps read anew. -EAGAIN: the copy of the
 * stack was too short, and a longer one is to be taken. */
static int unwind(struct target *target, struct thread *thread)
{
    for (;;) {
        struct unwind_hints hints;
        bool maps_changed = false;
        int err = unwind_snapshot(target->unwinder, target->space, &target->snapshot,
                                  target->options->max_depth, &target->stack, &hints);
        if (!err && hints.has_unknown_address)
            err = target_space_refresh(target, &maps_changed);
        if (err)
            return err;
        if (maps_changed)
            continue;
        if (hints.needs_more_stack && thread->stack_limit < STACK_LIMIT_MAX) {
            thread->stack_limit *= 8;
            return -EAGAIN;
        }
        adjust_stack_limit(thread, hints.stack_bytes_used);
        return 0;
    }
}

/* Captures, or goes on with it. */
static enum capture_result capture(struct target *target, struct thread *thread)
{
    if (target->is_pending)
        return capture_collect(&target->capture, &target->snapshot);
    target->capture = (struct capture){.stack_limit = thread->stack_limit};
    return capture_thread(&target->capture, target->process.pid, target->process.proc_fd,
                          thread->tid, &target->snapshot);
}

static void note_exit(struct target *target)
{
    const struct stop *stop = &target->capture.stop;
    if (stop->exited && stop->tid == target->process.pid) {
        target->has_exit_status = true;
        target->exit_status = stop->exit_status;
    }
}

int target_sample(struct target *target, struct thread *thread)
{
    uint64_t tick = recording_tick_at(target->recording, recording_now_ns(target->recording));
    if (!target->is_pending && tick <= thread->counted_tick)
        return 0; /* a round that ended late has counted this tick */
    for (;;) {
        enum capture_result result = capture(target, thread);
        target->is_pending = result == CAPTURE_PENDING;
        target->pending_tid = thread->tid;
        if (target->is_pending)
            return 0;
        if (result == CAPTURE_GONE) {
            note_exit(target);
            int err = target_count_lost(target, thread);
            thread->has_exited = true;
            return err;
        }
        /* Another program's stack would be read with this one's maps: the next round has both
         * right. */
        if (result == CAPTURE_REFUSED || !target_space_is_current(target))
            return target_count_lost(target, thread);
        int err = unwind(target, thread);
        if (err == -EAGAIN)
            continue;
        revive(target, thread);
        if (!err)
            err = update_name(target, thread);
        return err ? err : count(target, thread);
    }
}
