#include "observe/stop.h"
#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

int stop_request(pid_t process_id, pid_t tid, struct stop *ret_stop)
{
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL)) {
        /* EPERM also means that the thread is exiting (ptrace_attach in the kernel's ptrace.c); EIO
         * means that it is one of ours. */
        return errno == ESRCH ? -ESRCH : -EPERM;
    }
    *ret_stop = (struct stop){.tid = tid, .process_id = process_id};
    return 0;
}

void stop_interrupt(struct stop *stop)
{
    stop->polled_ns = stop->running_ns = monotonic_ns();
    /* Fails only for a thread that has just died; stop_poll then sees its end. */
    ptrace(PTRACE_INTERRUPT, stop->tid, NULL, NULL);
}

/* Takes in what waitpid said about the thread. */
static int note_status(struct stop *stop, int status)
{
    if (!WIFSTOPPED(status)) {
        stop->exited = true;
        stop->exit_status = status;
        return -ESRCH;
    }
    /* PTRACE_EVENT_STOP is our stop or a group stop. A stop without an event is a signal on its way
     * to the thread, which it must still get (ptrace(2), "Signal-delivery-stop"). */
    if (status >> 16 == 0)
        stop->pass_signal = WSTOPSIG(status);
    else
        stop->is_group_stop = WSTOPSIG(status) != SIGTRAP;
    return 0;
}

/* Asking again is harmless, and fails with ESRCH for a thread that we do not trace. waitpid alone
 * can't tell, because a leader that another thread's exec replaced is a child of ours under `run`.
 */
static bool is_traced_by_us(pid_t tid)
{
    return ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 || errno != ESRCH;
}

int stop_poll(struct stop *stop)
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
        /* A thread that executes a program takes on the process's id (execve(2)). It is still
         * traced by us and still asked to stop. */
        stop->tid = stop->process_id;
    }
}

static bool detach(const struct stop *stop)
{
    return ptrace(PTRACE_DETACH, stop->tid, NULL, (void *)(intptr_t)stop->pass_signal) == 0;
}

/* A thread that is not let go stays stopped for as long as we live, so a refusal counts only if it
 * is repeated. */
void stop_release(struct stop *stop)
{
    stop->is_dying = !detach(stop) && !detach(stop);
    stop->released_ns = monotonic_ns();
}

bool stop_end(struct stop *stop)
{
    int status;
    pid_t got = waitpid(stop->tid, &status, __WALL | WNOHANG);
    if (got == stop->tid)
        note_status(stop, status);
    return got != 0 || !is_traced_by_us(stop->tid);
}
