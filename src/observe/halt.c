/* Captures of threads that run, by stopping them. */
#include "observe/capture.h"
#include "base/clock.h"

#include <errno.h>

enum capture_result capture_stop(struct capture *capture, const struct capture_request *request,
                                 const struct capture *look, struct snapshot *snapshot)
{
    *capture = *look;
    capture->request = *request;
    /* In the pause nothing is allocated. */
    if (!snapshot_make_room(snapshot, request->stack_limit, &request->other_stack))
        return CAPTURE_REFUSED;
    int err = stop_request(request->process_id, request->tid, &capture->stop);
    if (err)
        return err == -ESRCH ? CAPTURE_GONE : CAPTURE_REFUSED;
    return CAPTURE_PENDING;
}

enum capture_result capture_collect(struct capture *capture, struct snapshot *snapshot)
{
    const struct capture_request *request = &capture->request;
    struct stop *stop = &capture->stop;
    int err = stop_poll(stop);
    if (err)
        return err == -EAGAIN ? CAPTURE_PENDING : CAPTURE_GONE;
    err = registers_read_stopped(stop->tid, &snapshot->registers);
    if (!err)
        snapshot_copy_stacks(snapshot, request->tid, request->stack_areas, request->stack_limit,
                             &request->other_stack);
    if (!err && !stop->is_group_stop)
        registers_hide_stop(stop->tid, &snapshot->registers);
    stop_release(stop);
    capture->pause_ns = stop->released_ns - stop->running_ns;
    return err == -ENOTSUP ? CAPTURE_REFUSED : err ? CAPTURE_GONE : CAPTURE_DONE;
}

/* Whether it still slept where it was found. */
static bool is_still_blocked(const struct blocked *blocked, const struct registers *registers)
{
    return blocked->pc && blocked->pc == registers_pc(registers) &&
           blocked->sp == registers_sp(registers);
}

void capture_conclude(struct capture *capture, struct watch *watch, const struct snapshot *snapshot)
{
    const struct capture_request *request = &capture->request;
    const struct watch_place place = {request->proc_fd, request->tid, request->keep_fds_below};
    bool had_activity = capture->has_activity;
    uint64_t waited_before_ns = capture->activity.waiting_ns;
    capture->has_activity = watch_read_activity(&place, watch, &capture->activity) == 0;
    /* Later than the waits that are counted, since it has run on meanwhile. */
    uint64_t now_ns = monotonic_ns();
    capture->state = THREAD_RUNNING;
    if (capture->stop.is_group_stop) {
        capture->state = THREAD_STOPPED;
    } else if (snapshot->registers.interrupted_call >= 0 && !request->blocked.pc) {
        /* It ran when it was looked at, and has gone to sleep since. */
        capture->state = THREAD_SLEEPING;
        capture->syscall_number = snapshot->registers.interrupted_call;
    } else if (is_still_blocked(&request->blocked, &snapshot->registers)) {
        capture->state = request->blocked.state;
        capture->syscall_number = request->blocked.syscall_number;
    } else if (had_activity && capture->has_activity &&
               capture->activity.waiting_ns > waited_before_ns) {
        capture->state = thread_state_by_wait(capture->activity.waiting_ns - waited_before_ns,
                                              now_ns - request->awake_ns);
    }
}
