/* Observes sleeping threads without stopping them.
 *
 * A blocked thread is read as it is: stack pointer and program counter from its `syscall` file, the
 * stack from memory. The kernel's count of how often it got a CPU, read before and after, proves
 * that it did not move meanwhile; as long as that count stays the same, the thread is where it was.
 * If the kernel does not keep that count, the count of how often it left a CPU is used instead,
 * together with a check that the thread is blocked. */
#include "observe/proc_source.h"
#include "base/clock.h"
#include "observe/sleep_details.h"
#include "proc/procfs.h"

#include <errno.h>
#include <stdlib.h>

/* Checks that a thread that was blocked with this number of switches has not run since. Returns 0,
 * -EAGAIN if it has, or another negative errno if that is not known. */
static int check_stayed(const struct watch_place *place, struct watch *watch,
                        const struct activity *before)
{
    struct activity after;
    struct registers registers;
    long syscall_number;
    /* A thread that woke and still runs has not left its CPU yet; a blocked thread has. */
    int err =
        before->counts_ends ? watch_read_blocked(place, watch, &registers, &syscall_number) : 0;
    if (!err)
        err = watch_read_activity(place, watch, &after);
    if (err)
        return err;
    return after.counts_ends == before->counts_ends && after.switches == before->switches ? 0
                                                                                          : -EAGAIN;
}

/* Whether the thread still sleeps where the last snapshot was taken. */
static bool is_unmoved(const struct watch_place *place, struct watch *watch,
                       const struct activity *now)
{
    return watch->is_asleep && watch->switches == now->switches &&
           (!now->counts_ends || check_stayed(place, watch, now) == 0);
}

/* Whether a thread that has not moved was woken: it is no longer blocked, but has not got a CPU
 * yet. */
static bool is_woken(const struct watch_place *place, struct watch *watch,
                     const struct activity *now)
{
    struct registers registers;
    long syscall_number;
    return watch_read_blocked(place, watch, &registers, &syscall_number) == -EAGAIN &&
           check_stayed(place, watch, now) == 0;
}

static void read_state(struct watch_place place, struct watch *watch,
                       struct observation *observation)
{
    char line[256];
    if (!watch->was_read)
        place.keep_fds_below = 0;
    if (watch_read(&place, &watch->stat, "stat", line, sizeof line) > 0)
        observation->state = thread_state_of_stat(line);
}

/* If the thread has moved meanwhile, the details may belong to another wait, and are dropped.
 * Returns 0 or -ENOMEM. */
static int read_details(const struct subject *subject, const struct watch_place *place,
                        struct watch *watch, struct observation *observation)
{
    read_state(*place, watch, observation);
    int err = sleep_details_read(subject, place, watch, observation);
    if (err || check_stayed(place, watch, &observation->now.activity) == 0)
        return err;
    sleep_details_drop(subject, observation);
    observation->asleep.is_over = true;
    observation->state = THREAD_SLEEPING;
    return 0;
}

/* Reads a blocked thread as it is. Nothing else is read between the first look and the proof that
 * it stayed: the longer that takes, the more short waits end before they are proven. Returns 0,
 * -EAGAIN if it runs or ran meanwhile, -ESRCH if it is a zombie or gone, or another negative errno
 * if that is unknown. */
static int copy_asleep(const struct subject *subject, const struct watch_place *place,
                       struct watch *watch, struct observation *observation)
{
    struct snapshot *snapshot = observation->snapshot;
    int err =
        watch_read_blocked(place, watch, &snapshot->registers, &observation->wait.syscall_number);
    if (err)
        return err;
    subject_copy(subject, snapshot);
    err = check_stayed(place, watch, &observation->now.activity);
    observation->asleep.was_asleep = err == -EAGAIN;
    if (err)
        return err;
    /* A thread without a stack has exited, or works only in the kernel, like those of io_uring: the
     * call that /proc shows is that of the thread that created it. */
    if (!registers_sp(&snapshot->registers)) {
        if (procfs_thread_has_exited(subject->proc_fd, subject->tid))
            return -ESRCH;
        observation->wait.syscall_number = -1;
    }
    watch->is_asleep = true;
    watch->switches = observation->now.activity.switches;
    err = read_details(subject, place, watch, observation);
    if (!err)
        sleep_details_read_preemptions(place, watch, observation);
    return err;
}

/* Only threads that are known to run may be stopped. */
static enum outcome outcome_of(int err)
{
    switch (err) {
    case 0:
        return OUTCOME_OBSERVED;
    case -EAGAIN:
        return OUTCOME_RUNNING;
    case -ESRCH:
        return OUTCOME_GONE;
    default:
        return OUTCOME_REFUSED;
    }
}

enum outcome proc_source_observe(struct watches *watches, const struct subject *subject,
                                 struct observation *observation)
{
    const struct watch_place place = {subject->proc_fd, subject->tid, watches->keep_fds_below};
    struct watch *watch = watches_get(watches, subject->thread);
    observation->evidence = EVIDENCE_ASLEEP;
    observation->state = THREAD_UNKNOWN;
    observation->wait.syscall_number = -1;
    observation->wait.channel[0] = '\0';
    observation->asleep.was_asleep = observation->asleep.is_over = false;
    if (!watch)
        return OUTCOME_REFUSED;
    int err = watch_read_activity(&place, watch, &observation->now.activity);
    observation->now.has_activity = !err;
    observation->now.at_ns = monotonic_ns();
    bool is_here =
        !err && !subject->wants_copy && is_unmoved(&place, watch, &observation->now.activity);
    if (is_here && subject->waits_for_cpu && is_woken(&place, watch, &observation->now.activity)) {
        observation->evidence = EVIDENCE_WOKEN;
        observation->state = THREAD_RUNNABLE;
        return OUTCOME_WOKEN;
    }
    if (is_here) {
        observation->evidence = EVIDENCE_UNMOVED;
        observation->state = THREAD_SLEEPING;
        observation->wait.call = subject->call;
        sleep_details_read_call(subject, observation);
        return OUTCOME_UNMOVED;
    }
    watch->is_asleep = false;
    if (!err) {
        err = copy_asleep(subject, &place, watch, observation);
        watch->was_read = true;
    }
    return outcome_of(err);
}
