/* Captures of threads that sleep. */
#include "observe/capture.h"
#include "proc/kernel_stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether a thread that was blocked when it had this count of switches has not run since. Returns
 * 0, -EAGAIN where it has, or another negative errno where that is not known. */
static int check_stayed(const struct watch_place *place, struct watch *watch,
                        const struct activity *before)
{
    struct activity after;
    struct registers registers;
    long syscall_number;
    /* One that woke and still runs has not lost its CPU yet. One that is blocked has. */
    int err =
        before->counts_ends ? watch_read_blocked(place, watch, &registers, &syscall_number) : 0;
    if (!err)
        err = watch_read_activity(place, watch, &after);
    if (err)
        return err;
    return after.counts_ends == before->counts_ends && after.switches == before->switches ? 0
                                                                                          : -EAGAIN;
}

/* Whether it still sleeps where the last snapshot was made. */
static bool is_unmoved(const struct watch_place *place, struct watch *watch,
                       const struct activity *now)
{
    return watch->is_asleep && watch->switches == now->switches &&
           (!now->counts_ends || check_stayed(place, watch, now) == 0);
}

/* Of a thread that is blocked, and where it waits if no signal wakes it. */
static void read_state(struct capture *capture, struct watch_place place, struct watch *watch)
{
    struct thread_file wchan = {0};
    char line[256];
    if (!watch->was_read)
        place.keep_fds_below = 0;
    if (watch_read(&place, &watch->stat, "stat", line, sizeof line) > 0)
        capture->state = thread_state_of_stat(line);
    place.keep_fds_below = 0;
    /* "0" where the kernel does not tell (proc(5)). */
    if (capture->state == THREAD_UNINTERRUPTIBLE &&
        watch_read(&place, &wchan, "wchan", line, sizeof line) > 0 && strcmp(line, "0") != 0)
        snprintf(capture->wait_channel, WAIT_CHANNEL_BYTES, "%.*s", WAIT_CHANNEL_BYTES - 1, line);
}

/* Returns 0 or -ENOMEM. What can't be read is empty. */
static int read_kernel_stack(struct watch_place place, struct snapshot *snapshot)
{
    struct thread_file stack = {0};
    if (!snapshot->kernel_stack && !(snapshot->kernel_stack = malloc(KERNEL_STACK_BYTES)))
        return -ENOMEM;
    /* Read once a sleep: not worth a descriptor. */
    place.keep_fds_below = 0;
    if (watch_read(&place, &stack, "stack", snapshot->kernel_stack, KERNEL_STACK_BYTES) < 0)
        snapshot->kernel_stack[0] = '\0';
    kernel_stack_parse(snapshot->kernel_stack);
    return 0;
}

/* Reads a blocked thread as it is. Returns 0, -EAGAIN where it runs or ran meanwhile, -ESRCH where
 * it is a zombie or gone, or another negative errno where that can't be known. */
static int copy_asleep(struct capture *capture, const struct watch_place *place,
                       struct watch *watch, struct snapshot *snapshot)
{
    const struct capture_request *request = &capture->request;
    int err = watch_read_blocked(place, watch, &snapshot->registers, &capture->syscall_number);
    if (err)
        return err;
    /* "-1 0x0 0x0": it has no stack any more. */
    if (!registers_sp(&snapshot->registers))
        return -ESRCH;
    snapshot_copy_stacks(snapshot, request->tid, request->stack_areas, request->stack_limit,
                         &request->other_stack);
    read_state(capture, *place, watch);
    if (request->wants_kernel_stack && read_kernel_stack(*place, snapshot))
        return -ENOMEM;
    err = check_stayed(place, watch, &capture->activity);
    if (err)
        return err;
    watch->is_asleep = true;
    watch->switches = capture->activity.switches;
    return 0;
}

/* Only what is known to run is to be stopped. */
static enum capture_result result_of(int err)
{
    switch (err) {
    case 0:
        return CAPTURE_DONE;
    case -EAGAIN:
        return CAPTURE_RUNNING;
    case -ESRCH:
        return CAPTURE_GONE;
    default:
        return CAPTURE_REFUSED;
    }
}

enum capture_result capture_look(struct capture *capture, const struct capture_request *request,
                                 struct watch *watch, struct snapshot *snapshot)
{
    const struct watch_place place = {request->proc_fd, request->tid, request->keep_fds_below};
    *capture = (struct capture){.request = *request, .syscall_number = -1};
    int err = watch_read_activity(&place, watch, &capture->activity);
    capture->has_activity = !err;
    if (!err && is_unmoved(&place, watch, &capture->activity))
        return CAPTURE_UNMOVED;
    watch->is_asleep = false;
    if (err)
        return result_of(err);
    if (!snapshot_make_room(snapshot, request->stack_limit, &request->other_stack))
        return CAPTURE_REFUSED;
    err = copy_asleep(capture, &place, watch, snapshot);
    watch->was_read = true;
    return result_of(err);
}

bool capture_must_stop(const struct capture_request *request, struct watch *watch)
{
    const struct watch_place place = {request->proc_fd, request->tid, request->keep_fds_below};
    const struct blocked *blocked = &request->blocked;
    struct registers registers;
    long syscall_number;
    int err = watch_read_blocked(&place, watch, &registers, &syscall_number);
    if (!blocked->pc)
        return err == -EAGAIN;
    return !err && syscall_number == blocked->syscall_number &&
           registers_pc(&registers) == blocked->pc && registers_sp(&registers) == blocked->sp;
}
