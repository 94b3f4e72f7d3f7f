#include "target/stop.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

/* A thread on a CPU stops within about 30 us: looking for that long without sleeping keeps its
 * pause short. After that it is waiting for a CPU, and is not made slower by our being late. */
#define SPIN_NS 60000
#define NAP_NS 30000

uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* While a thread is stopped it waits for us: on a busy machine for as long as the scheduler lets us
 * wait for a CPU, which is milliseconds for an ordinary thread. Where we may, we run first then,
 * and only then: a sampler that takes a CPU at each tick before anybody else finds asleep who would
 * be running, because it has just stopped whom they work for. */
static void run_before_others(struct stop *stop)
{
    struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_RR)};
    int policy = sched_getscheduler(0);
    stop->runs_first = policy == SCHED_OTHER &&
                       sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) == 0;
}

static void run_as_others(const struct stop *stop)
{
    struct sched_param none = {0};
    if (stop->runs_first)
        sched_setscheduler(0, SCHED_OTHER, &none);
}

int stop_request(pid_t process_id, pid_t tid, struct stop *ret_stop)
{
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL)) {
        /* EPERM also means that it is exiting (ptrace_attach in the kernel's ptrace.c); EIO that it
         * is a thread of ours. */
        return errno == ESRCH ? -ESRCH : -EPERM;
    }
    *ret_stop = (struct stop){.tid = tid, .process_id = process_id};
    run_before_others(ret_stop);
    ret_stop->running_ns = monotonic_ns();
    /* Fails only for one that has just died: its end is then collected by stop_await. */
    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
    return 0;
}

/* Takes in what waitpid said of it. */
static int note_status(struct stop *stop, int status)
{
    if (!WIFSTOPPED(status)) {
        stop->exited = true;
        stop->exit_status = status;
        return -ESRCH;
    }
    /* PTRACE_EVENT_STOP is ours or a group stop; without an event it is a signal on its way to the
     * thread, which it must still get (ptrace(2), "Signal-delivery-stop"). */
    if (status >> 16 == 0)
        stop->pass_signal = WSTOPSIG(status);
    else
        stop->is_group_stop = WSTOPSIG(status) != SIGTRAP;
    return 0;
}

/* Asking again is harmless, and fails for a thread that is not ours: a leader that another thread's
 * exec replaced is a child of ours under `run`, so waitpid alone can't tell. */
static bool is_traced_by_us(pid_t tid)
{
    return ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0;
}

static int await(struct stop *stop, uint64_t wait_ns)
{
    uint64_t begin_ns = monotonic_ns();
    for (;;) {
        int status;
        uint64_t now_ns = monotonic_ns();
        pid_t got = waitpid(stop->tid, &status, __WALL | WNOHANG);
        if (got == stop->tid)
            return note_status(stop, status);
        if (got < 0 && errno == ECHILD && stop->tid != stop->process_id) {
            /* A thread that executes a program takes on the process's id (execve(2)), still ours
             * and still asked to stop. */
            stop->tid = stop->process_id;
            continue;
        }
        if (got < 0 && errno != EINTR)
            return -ESRCH;
        stop->running_ns = now_ns;
        uint64_t waited_ns = now_ns - begin_ns;
        if (waited_ns >= wait_ns)
            return is_traced_by_us(stop->tid) ? -EAGAIN : -ESRCH;
        if (waited_ns >= SPIN_NS) {
            struct timespec nap = {0, NAP_NS};
            clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
        }
    }
}

int stop_await(struct stop *stop, uint64_t wait_ns)
{
    int err = await(stop, wait_ns);
    if (err == -ESRCH)
        run_as_others(stop);
    return err;
}

void stop_release(struct stop *stop)
{
    ptrace(PTRACE_DETACH, stop->tid, NULL, (void *)(intptr_t)stop->pass_signal);
    stop->released_ns = monotonic_ns();
    run_as_others(stop);
}
