#include "observe/ptrace_source.h"
#include "base/array.h"
#include "base/clock.h"
#include "observe/reaper.h"
#include "proc/procfs.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

/* A look is trusted up to this age: a thread that it found running is stopped without another
 * look. */
#define LOOK_FRESH_NS 100000

/* The kernel's figures for a thread's sleep are exact, but it may have counted an interrupt. */
#define SLEEP_MIN_NS 1000

/* ---- One thread ----
 *
 * SEIZE does not pause it, INTERRUPT does, DETACH releases it; between samples it is not traced. */

struct stop {
    pid_t tid;
    pid_t process_id;       /* replaces tid if that thread executes a program */
    int pass_signal;        /* a signal that it was about to receive when it stopped: delivered
                               at release */
    uint64_t polled_ns;     /* CLOCK_MONOTONIC: when it was last found not to have stopped yet */
    uint64_t running_ns;    /* CLOCK_MONOTONIC: when it was last known not to have stopped yet */
    uint64_t released_ns;   /* CLOCK_MONOTONIC */
    bool may_become_leader; /* set by the caller: no other stop has the process's id */
    bool is_group_stop;     /* a signal stopped it too, and it stays stopped */
    bool is_dying;          /* it was killed while stopped, and stays our tracee until it is dead */
    bool exited;            /* its end was seen while waiting for it */
    int exit_status;        /* as from waitpid, if it has exited */
};

/* Attaches to thread `tid` of process `process_id`, which continues to run. Returns 0, -ESRCH if it
 * is gone, or -EPERM if it is exiting, may not be traced, or is traced by another process. */
static int request(pid_t process_id, pid_t tid, struct stop *ret_stop)
{
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL)) {
        /* EPERM also means that the thread is exiting (ptrace_attach in the kernel's ptrace.c); EIO
         * means that it is one of our own threads. */
        return errno == ESRCH ? -ESRCH : -EPERM;
    }
    *ret_stop = (struct stop){.tid = tid, .process_id = process_id};
    return 0;
}

static void interrupt(struct stop *stop)
{
    stop->polled_ns = stop->running_ns = monotonic_ns();
    /* Fails only for a thread that has just died; poll_stop then sees its end. */
    ptrace(PTRACE_INTERRUPT, stop->tid, NULL, NULL);
}

/* Handles the status that waitpid returned for the thread. */
static int note_status(struct stop *stop, int status)
{
    if (!WIFSTOPPED(status)) {
        stop->exited = true;
        stop->exit_status = status;
        return -ESRCH;
    }
    /* PTRACE_EVENT_STOP is our stop or a group stop. A stop without an event is a signal on its way
     * to the thread, which must still be delivered (ptrace(2), "Signal-delivery-stop"). */
    if (status >> 16 == 0)
        stop->pass_signal = WSTOPSIG(status);
    else
        stop->is_group_stop = WSTOPSIG(status) != SIGTRAP;
    return 0;
}

/* Interrupting again is harmless, and fails with ESRCH for a thread that we do not trace. waitpid
 * alone does not show that, because under `run` a leader that another thread's exec replaced is
 * still a child of ours. */
static bool is_traced_by_us(pid_t tid)
{
    return ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 || errno != ESRCH;
}

/* Checks whether the thread has stopped, without waiting. Returns 0 if it has, -EAGAIN if it has
 * not yet, -ESRCH if it has exited. */
static int poll_stop(struct stop *stop)
{
    for (;;) {
        int status;
        uint64_t now_ns = monotonic_ns();
        pid_t got = waitpid(stop->tid, &status, __WALL | WNOHANG);
        if (got == stop->tid)
            return note_status(stop, status);
        if (got == 0) {
            stop->running_ns = stop->polled_ns = now_ns;
            return stop->tid != stop->process_id || is_traced_by_us(stop->tid) ? -EAGAIN : -ESRCH;
        }
        if (errno == EINTR)
            continue;
        if (errno != ECHILD || stop->tid == stop->process_id || !stop->may_become_leader)
            return -ESRCH;
        /* A thread that executes a program takes over the process's id (execve(2)). We still trace
         * it, and its stop is still pending. */
        stop->tid = stop->process_id;
    }
}

static bool detach(const struct stop *stop)
{
    return ptrace(PTRACE_DETACH, stop->tid, NULL, (void *)(intptr_t)stop->pass_signal) == 0;
}

/* Releases a stopped thread, with the signal that it was about to receive. A thread that is not
 * released stays stopped for as long as we live, so a failure only counts if it is repeated. */
static void release(struct stop *stop)
{
    stop->is_dying = !detach(stop) && !detach(stop);
    stop->released_ns = monotonic_ns();
}

/* Collects a dying thread if it is dead. Returns false if it is not dead yet. */
static bool take_end(struct stop *stop)
{
    int status;
    pid_t got = waitpid(stop->tid, &status, __WALL | WNOHANG);
    if (got == stop->tid)
        note_status(stop, status);
    return got != 0 || !is_traced_by_us(stop->tid);
}

/* ---- Many threads: several threads of a process may be held at a time, with a reaper ---- */

/* A pending stop. */
struct pending {
    struct subject subject;
    struct observation observation;
    struct stop stop;
    bool is_interrupted;
    bool is_over; /* to be collected, with `outcome` */
    enum outcome outcome;
    /* The kernel's account before the stop was requested, and after the thread had stopped. */
    bool knows_last_run;
    struct last_run last_run[2];
    bool has_activity;
    struct activity activity;
};

struct seen_exit {
    pid_t process_id;
    int status;
};

struct ptrace_source {
    struct watches *watches;
    struct reaper *reaper;
    struct pending pending[STOPS_MAX];
    size_t count;
    struct stop *dying; /* first threads of processes, killed while they were stopped */
    size_t dying_count, dying_capacity;
    struct seen_exit *exits; /* not taken yet */
    size_t exit_count, exit_capacity;
    bool runs_first; /* the calling thread runs before others: see run_first */
};

static struct watch_place place_of(const struct ptrace_source *source,
                                   const struct subject *subject)
{
    return (struct watch_place){subject->proc_fd, subject->tid, source->watches->keep_fds_below};
}

/* The time that the stop should show: a tick, or when a visit was due. 0: none in particular. */
static uint64_t moment_ns(const struct subject *subject)
{
    return subject->visit_ns ? subject->visit_ns : subject->tick_ns;
}

/* Whether a thread that was looked at some time ago should still be stopped: it still runs or, if
 * it should be stopped while asleep, it still sleeps in the same place. */
static bool must_stop(const struct ptrace_source *source, const struct subject *subject,
                      struct watch *watch)
{
    const struct watch_place place = place_of(source, subject);
    const struct sleep_place *asleep = &subject->asleep;
    struct registers registers;
    long syscall_number;
    bool is_fresh = monotonic_ns() < subject->look.at_ns + LOOK_FRESH_NS;
    if (is_fresh && !asleep->pc)
        return true;
    int err = watch_read_blocked(&place, watch, &registers, &syscall_number);
    if (!asleep->pc)
        return err == -EAGAIN;
    return !err && syscall_number == asleep->syscall_number &&
           registers_pc(&registers) == asleep->pc && registers_sp(&registers) == asleep->sp;
}

enum outcome ptrace_source_observe(struct ptrace_source *source, const struct subject *subject,
                                   const struct observation *observation)
{
    struct watch *watch = watches_get(source->watches, subject->thread);
    bool is_leader = subject->tid == subject->process_id;
    if (!watch || source->count == STOPS_MAX)
        return OUTCOME_REFUSED;
    if (!must_stop(source, subject, watch))
        return OUTCOME_ASLEEP;
    if (subject->context)
        snapshot_context(observation->snapshot); /* allocates: not done while it is stopped */
    struct pending *item = &source->pending[source->count];
    if (subject->python.layout)
        snapshot_python(observation->snapshot); /* as above */
    *item = (struct pending){.subject = *subject, .observation = *observation};
    const struct watch_place place = place_of(source, subject);
    item->knows_last_run =
        moment_ns(subject) && watch_read_last_run(&place, watch, &item->last_run[0]);
    reaper_watch(source->reaper);
    if (!is_leader && reaper_hold(source->reaper, subject->tid))
        return OUTCOME_REFUSED;
    int err = request(subject->process_id, subject->tid, &item->stop);
    if (!err) {
        source->count++;
        return OUTCOME_PENDING;
    }
    if (!is_leader)
        reaper_drop(source->reaper, subject->tid);
    /* A thread that may not be traced may have exited: ptrace does not distinguish the two. */
    return err == -ESRCH || procfs_thread_has_exited(subject->proc_fd, subject->tid)
               ? OUTCOME_GONE
               : OUTCOME_REFUSED;
}

/* A stopped thread waits for us: on a busy machine, for as long as we wait for a CPU, which is
 * milliseconds for an ordinary thread. So while threads are stopped, and only then, we run before
 * others if permitted: a sampler that took a CPU first at every tick would preempt a thread's peers
 * and see them asleep when they would be running. A scheduling policy that was set for this thread
 * is not changed.
 *
 * SCHED_RESET_ON_FORK stays set: clearing it requires a capability that RLIMIT_RTPRIO does not
 * replace (sched(7)). It has no effect on a thread of ordinary priority. */
static void run_first(struct ptrace_source *source)
{
    struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_RR)};
    if (!source->runs_first)
        source->runs_first = (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) == SCHED_OTHER &&
                             sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) == 0;
}

static void run_as_others(struct ptrace_source *source)
{
    struct sched_param none = {0};
    if (source->runs_first) {
        sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none);
        prctl(PR_SET_TIMERSLACK, 1); /* the call above resets it, at least on 6.18 */
    }
    source->runs_first = false;
}

void ptrace_source_interrupt(struct ptrace_source *source)
{
    /* From here on the threads wait for us, so we must not wait for others. */
    if (source->count)
        run_first(source);
    for (size_t i = 0; i < source->count; i++) {
        struct pending *item = &source->pending[i];
        if (!item->is_interrupted)
            interrupt(&item->stop);
        item->is_interrupted = true;
    }
}

/* Whether a stop of the process's first thread is pending, which has the process's id. */
static bool holds_leader(const struct ptrace_source *source, pid_t process_id)
{
    for (size_t i = 0; i < source->count; i++) {
        const struct pending *item = &source->pending[i];
        if (!item->is_over && item->stop.tid == process_id)
            return true;
    }
    return false;
}

static void note_exit(struct ptrace_source *source, const struct stop *stop)
{
    if (stop->exited && stop->tid == stop->process_id)
        (void)array_append(&source->exits, &source->exit_count, &source->exit_capacity,
                           (struct seen_exit){stop->process_id, stop->exit_status});
}

/* A thread that was killed while we held it stays our tracee until it is dead. The reaper must not
 * collect the first thread of a process, which may be a child of ours. */
static void end_stop(struct ptrace_source *source, struct pending *item, enum outcome outcome)
{
    const struct stop *stop = &item->stop;
    item->is_over = true;
    item->outcome = outcome;
    note_exit(source, stop);
    if (stop->is_dying && stop->tid == stop->process_id)
        (void)array_append(&source->dying, &source->dying_count, &source->dying_capacity, *stop);
    if (stop->is_dying && item->subject.tid == stop->tid)
        reaper_abandon(source->reaper, stop->tid);
    else
        reaper_drop(source->reaper, item->subject.tid);
}

/* A thread pointer that was found in a stop is kept for looks at the sleeping thread. */
static void read_context(const struct ptrace_source *source, const struct subject *subject,
                         struct snapshot *snapshot)
{
    struct watch *watch = watches_get(source->watches, subject->thread);
    if (!subject->context || !watch)
        return;
    if (snapshot->registers.thread_pointer)
        watch->thread_pointer = snapshot->registers.thread_pointer;
    subject_read_context(subject, &watch->thread_pointer, snapshot);
}

/* Called before the thread is released: these figures must not include what it does later. */
static void read_account(const struct ptrace_source *source, struct pending *item)
{
    const struct watch_place place = place_of(source, &item->subject);
    struct watch *watch = watches_get(source->watches, item->subject.thread);
    item->has_activity = watch && watch_read_activity(&place, watch, &item->activity) == 0;
    item->knows_last_run = item->knows_last_run && item->has_activity &&
                           watch_read_last_run(&place, watch, &item->last_run[1]);
}

/* Copies and releases a thread if it has stopped. */
static void try_to_copy(struct ptrace_source *source, struct pending *item)
{
    const struct subject *subject = &item->subject;
    struct snapshot *snapshot = item->observation.snapshot;
    struct stop *stop = &item->stop;
    int err = poll_stop(stop);
    if (err) {
        if (err != -EAGAIN)
            end_stop(source, item, OUTCOME_GONE);
        return;
    }
    err = registers_read_stopped(stop->tid, &snapshot->registers);
    if (!err)
        subject_copy(subject, snapshot);
    if (!err)
        read_context(source, subject, snapshot);
    if (!err && !stop->is_group_stop)
        registers_hide_stop(stop->tid, &snapshot->registers);
    read_account(source, item);
    release(stop);
    item->observation.stop.pause_ns = stop->released_ns - stop->running_ns;
    end_stop(source, item,
             err == -ENOTSUP ? OUTCOME_REFUSED
             : err           ? OUTCOME_GONE
                             : OUTCOME_OBSERVED);
}

size_t ptrace_source_let_go(struct ptrace_source *source, uint64_t heard_ns)
{
    size_t over = 0;
    for (size_t i = 0; i < source->count; i++) {
        struct pending *item = &source->pending[i];
        if (!item->is_over) {
            item->stop.may_become_leader = !holds_leader(source, item->subject.process_id);
            if (heard_ns > item->stop.running_ns)
                item->stop.running_ns = heard_ns;
            try_to_copy(source, item);
        }
        over += item->is_over;
    }
    if (over == source->count)
        run_as_others(source);
    return over;
}

/* The thread's state at that time, if it was not asleep. A thread that lost its CPU to us left it
 * when we came. If that time is not known, such a thread has waited for as long as we have run. */
static enum thread_state awake_state(const struct pending *item, uint64_t waited_ns)
{
    const struct subject *subject = &item->subject;
    if (subject->came_ns && item->knows_last_run)
        return last_run_is_before(&item->last_run[0], subject->came_ns) ? THREAD_RUNNABLE
                                                                        : THREAD_RUNNING;
    return thread_state_by_wait(waited_ns, item->stop.released_ns - subject->awake_ns);
}

/* Sets *ret_state to the thread's state at that time. Returns false if it has slept since then, so
 * that it was copied in another place. */
static bool find_state(const struct pending *item, enum thread_state *ret_state)
{
    uint64_t waited_ns = item->activity.waiting_ns - item->subject.look.activity.waiting_ns;
    uint64_t slept_ns = item->knows_last_run
                            ? last_run_slept_ns(&item->last_run[0], &item->last_run[1], waited_ns)
                            : 0;
    uint64_t woken_ns = item->stop.polled_ns - waited_ns, at_ns = moment_ns(&item->subject);
    *ret_state = slept_ns < SLEEP_MIN_NS ? awake_state(item, waited_ns)
                 : woken_ns > at_ns      ? THREAD_SLEEPING
                                         : THREAD_RUNNABLE;
    return slept_ns < SLEEP_MIN_NS || woken_ns - slept_ns <= at_ns;
}

/* Finds out what a thread was doing when it was copied; by now it continues. */
static void conclude(struct ptrace_source *source, struct pending *item)
{
    const struct subject *subject = &item->subject;
    const struct watch_place place = place_of(source, subject);
    struct watch *watch = watches_get(source->watches, subject->thread);
    struct observation *observation = &item->observation;
    const struct registers *registers = &observation->snapshot->registers;
    struct reading *now = &observation->now;
    const struct reading *look = &subject->look;
    now->has_activity = watch && watch_read_activity(&place, watch, &now->activity) == 0;
    /* Later than the end of the counted waits, because the thread has continued meanwhile. */
    now->at_ns = monotonic_ns();
    observation->evidence = EVIDENCE_STOPPED;
    observation->state = THREAD_RUNNING;
    observation->wait.syscall_number = -1;
    observation->wait.channel[0] = '\0';
    observation->stop.asked = subject->asleep;
    observation->stop.switches =
        item->has_activity && !item->activity.counts_ends ? item->activity.switches : 0;
    observation->stop.visit_ns = subject->visit_ns;
    if (item->stop.is_group_stop) {
        observation->state = THREAD_STOPPED;
    } else if (registers->interrupted_call >= 0 && !subject->asleep.pc) {
        /* It was running when it was looked at, and has fallen asleep since. */
        observation->state = THREAD_SLEEPING;
        observation->wait.syscall_number = registers->interrupted_call;
    } else if (sleep_place_has(&subject->asleep, registers)) {
        observation->state = subject->asleep.state;
        observation->wait.syscall_number = subject->asleep.syscall_number;
    } else if (look->has_activity && item->has_activity) {
        if (!find_state(item, &observation->state))
            item->outcome = OUTCOME_ASLEEP;
        if (observation->state == THREAD_SLEEPING)
            observation->wait.syscall_number =
                registers_sp(registers) ? registers->finished_call : -1; /* as in proc_source.c */
    }
    /* If there are visits, they show where a thread runs, and ticks only where it was otherwise. */
    bool runs = observation->state == THREAD_RUNNING;
    if (subject->visit_ns ? !runs : subject->came_ns && runs)
        item->outcome = OUTCOME_ASLEEP;
}

bool ptrace_source_collect(struct ptrace_source *source, struct observation *ret_observation,
                           enum outcome *ret_outcome)
{
    for (size_t i = 0; i < source->count; i++) {
        struct pending *item = &source->pending[i];
        if (!item->is_over)
            continue;
        if (item->outcome == OUTCOME_OBSERVED)
            conclude(source, item);
        *ret_observation = item->observation;
        *ret_outcome = item->outcome;
        *item = source->pending[--source->count];
        if (!source->count)
            run_as_others(source); /* the last one may have ended without ptrace_source_let_go */
        return true;
    }
    return false;
}

bool ptrace_source_has_room(const struct ptrace_source *source)
{
    return source->count < STOPS_MAX;
}

size_t ptrace_source_pending(const struct ptrace_source *source)
{
    return source->count;
}

bool ptrace_source_awaits(const struct ptrace_source *source, pid_t process_id)
{
    for (size_t i = 0; i < source->count; i++) {
        if (source->pending[i].subject.process_id == process_id)
            return true;
    }
    for (size_t i = 0; i < source->dying_count; i++) {
        if (source->dying[i].process_id == process_id)
            return true;
    }
    return false;
}

void ptrace_source_drop_dead_leader(struct ptrace_source *source, pid_t process_id, int proc_fd)
{
    for (size_t i = 0; i < source->count; i++) {
        struct pending *item = &source->pending[i];
        struct proc_stat stat;
        if (item->is_over || item->stop.tid != process_id ||
            procfs_thread_stat(proc_fd, process_id, &stat) || stat.state != 'Z')
            continue;
        item->stop.is_dying = true;
        end_stop(source, item, OUTCOME_GONE);
    }
}

/* Whether a thread of the process has not stopped yet. (ptrace_source_awaits includes those that
 * have, until they are collected.) */
static bool is_pending(const struct ptrace_source *source, pid_t process_id)
{
    for (size_t i = 0; i < source->count; i++) {
        if (!source->pending[i].is_over && source->pending[i].stop.process_id == process_id)
            return true;
    }
    return false;
}

/* Collects dying first threads. Skips a process with pending stops: a thread that took over the id
 * by executing a program, or is about to, may be among them, and its stop must not be taken here.
 */
static void await_dying(struct ptrace_source *source)
{
    for (size_t i = source->dying_count; i-- > 0;) {
        if (is_pending(source, source->dying[i].process_id) || !take_end(&source->dying[i]))
            continue;
        note_exit(source, &source->dying[i]);
        source->dying[i] = source->dying[--source->dying_count];
    }
}

bool ptrace_source_next_exit(struct ptrace_source *source, pid_t *ret_process_id, int *ret_status)
{
    await_dying(source);
    if (!source->exit_count)
        return false;
    const struct seen_exit *exit = &source->exits[--source->exit_count];
    *ret_process_id = exit->process_id;
    *ret_status = exit->status;
    return true;
}

void ptrace_source_give_up(struct ptrace_source *source)
{
    reaper_forget_all(source->reaper);
}

void ptrace_source_free(struct ptrace_source *source)
{
    if (!source)
        return;
    reaper_free(source->reaper);
    free(source->dying);
    free(source->exits);
    free(source);
}

int ptrace_source_new(struct watches *watches, struct ptrace_source **ret_source)
{
    struct ptrace_source *source = calloc(1, sizeof *source);
    if (!source)
        return -ENOMEM;
    source->watches = watches;
    int err = reaper_new(&source->reaper);
    if (err) {
        free(source);
        return err;
    }
    *ret_source = source;
    return 0;
}
