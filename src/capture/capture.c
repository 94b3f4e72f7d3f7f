#include "capture/capture.h"
#include "target/activity.h"
#include "target/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long a tick waits for one thread to stop, before it goes on with others. */
#define STOP_WAIT_NS 1000000
#define STACK_PAGE_BYTES 4096u /* the smallest there is */
#define STATUS_BYTES 8192      /* what is looked for stands at its end */

void snapshot_free(struct snapshot *snapshot)
{
    free(snapshot->stack);
    *snapshot = (struct snapshot){0};
}

/* Before the pause: in it nothing is allocated. */
static bool make_room(struct snapshot *snapshot, size_t stack_bytes)
{
    if (snapshot->stack_capacity >= stack_bytes)
        return true;
    unsigned char *stack = malloc(stack_bytes);
    if (!stack)
        return false;
    free(snapshot->stack);
    snapshot->stack = stack;
    snapshot->stack_capacity = stack_bytes;
    return true;
}

/* Up to the end of the mapping that the stack is in, and no further: what lies behind may be
 * anything, also memory that is slow to read, or that only the thread that we hold can provide
 * (userfaultfd(2)). Where the mapping is not known, up to the end of the page. */
static void copy_stack(const struct capture_request *request, struct snapshot *snapshot)
{
    uint64_t sp = registers_sp(&snapshot->registers);
    uint64_t end = stack_areas_end(request->stack_areas, sp);
    snapshot->stack_end_is_known = end != 0;
    uint64_t room = end ? end - sp : STACK_PAGE_BYTES - sp % STACK_PAGE_BYTES;
    size_t bytes = room < request->stack_limit ? room : request->stack_limit;
    snapshot->stack_address = sp;
    snapshot->stack_end = sp + room;
    snapshot->stack_bytes = memory_read(request->tid, sp, snapshot->stack, bytes);
}

void watch_close(struct watch *watch)
{
    thread_file_close(&watch->schedstat);
    thread_file_close(&watch->syscall);
    thread_file_close(&watch->stat);
    thread_file_close(&watch->status);
    *watch = (struct watch){0};
}

bool capture_parse_syscall(const char *line, struct registers *ret_registers,
                           long *ret_syscall_number)
{
    uint64_t arguments[6] = {0}, sp, pc;
    if (sscanf(line, "-1 %" SCNx64 " %" SCNx64, &sp, &pc) == 2) {
        registers_set_blocked(ret_registers, arguments, sp, pc);
        /* Outside a call the other registers are anything. */
        ret_registers->known = 1ull << architecture.sp | 1ull << architecture.pc;
        *ret_syscall_number = -1;
        return true;
    }
    long number;
    int fields = sscanf(line,
                        "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
                        " %" SCNx64 " %" SCNx64,
                        &number, &arguments[0], &arguments[1], &arguments[2], &arguments[3],
                        &arguments[4], &arguments[5], &sp, &pc);
    if (fields != 9 || number < 0)
        return false;
    registers_set_blocked(ret_registers, arguments, sp, pc);
    *ret_syscall_number = number;
    return true;
}

static ssize_t read_file(const struct capture_request *request, struct thread_file *file,
                         const char *name, char *buffer, size_t buffer_bytes)
{
    return thread_file_read(file, request->proc_fd, request->tid, name, request->keep_fds_below,
                            buffer, buffer_bytes);
}

static bool read_activity(const struct capture_request *request, struct watch *watch,
                          struct activity *ret_activity)
{
    char line[128], status[STATUS_BYTES];
    if (read_file(request, &watch->schedstat, "schedstat", line, sizeof line) > 0 &&
        activity_parse(line, ret_activity))
        return true;
    return read_file(request, &watch->status, "status", status, sizeof status) > 0 &&
           activity_parse_status(status, ret_activity);
}

/* Reads where a thread is blocked. False where it is not: on a CPU, or waiting for one
 * (task_current_syscall in the kernel's lib/syscall.c). */
static bool read_blocked(const struct capture_request *request, struct watch *watch,
                         struct registers *ret_registers, long *ret_syscall_number)
{
    char line[256];
    return read_file(request, &watch->syscall, "syscall", line, sizeof line) > 0 &&
           capture_parse_syscall(line, ret_registers, ret_syscall_number);
}

/* Whether a thread that was blocked when it had this count of switches has not run since. */
static bool has_stayed(const struct capture_request *request, struct watch *watch,
                       const struct activity *before)
{
    struct activity after;
    struct registers registers;
    long syscall_number;
    /* One that woke and still runs has not lost its CPU yet. One that is blocked has. */
    if (before->counts_ends && !read_blocked(request, watch, &registers, &syscall_number))
        return false;
    return read_activity(request, watch, &after) && after.counts_ends == before->counts_ends &&
           after.switches == before->switches;
}

/* Whether it still sleeps where the last snapshot was made. */
static bool is_unmoved(const struct capture_request *request, struct watch *watch,
                       const struct activity *now)
{
    return watch->is_asleep && watch->switches == now->switches &&
           (!now->counts_ends || has_stayed(request, watch, now));
}

/* Of a thread that is blocked, and where it waits if no signal wakes it. */
static void read_state(struct capture *capture, struct watch *watch)
{
    struct capture_request request = capture->request;
    struct thread_file wchan = {0};
    char line[256];
    /* One that never moves is read once, which is not worth a descriptor. */
    if (!watch->was_asleep)
        request.keep_fds_below = 0;
    watch->was_asleep = true;
    if (read_file(&request, &watch->stat, "stat", line, sizeof line) > 0)
        capture->state = thread_state_of_stat(line);
    request.keep_fds_below = 0;
    /* "0" where the kernel does not tell (proc(5)). */
    if (capture->state == THREAD_UNINTERRUPTIBLE &&
        read_file(&request, &wchan, "wchan", line, sizeof line) > 0 && strcmp(line, "0") != 0)
        snprintf(capture->wait_channel, WAIT_CHANNEL_BYTES, "%.*s", WAIT_CHANNEL_BYTES - 1, line);
}

/* Reads a blocked thread as it is. Returns 0, -EAGAIN where it runs or ran meanwhile, -ESRCH where
 * it is a zombie. */
static int copy_asleep(struct capture *capture, struct watch *watch, const struct activity *before,
                       struct snapshot *snapshot)
{
    const struct capture_request *request = &capture->request;
    if (!read_blocked(request, watch, &snapshot->registers, &capture->syscall_number))
        return -EAGAIN;
    /* "-1 0x0 0x0": it has no stack any more. */
    if (!registers_sp(&snapshot->registers))
        return -ESRCH;
    copy_stack(request, snapshot);
    read_state(capture, watch);
    if (!has_stayed(request, watch, before))
        return -EAGAIN;
    watch->is_asleep = true;
    watch->switches = before->switches;
    return 0;
}

/* Of a thread that has been let go: the file is not read while it stands still. */
static enum thread_state state_of_stopped(const struct capture *capture)
{
    struct watch watch = {0};
    struct activity after;
    if (capture->stop.is_group_stop)
        return THREAD_STOPPED;
    if (!capture->was_running)
        return capture->state; /* as it was read just before */
    if (!capture->look.is_known)
        return THREAD_UNKNOWN;
    bool is_known = read_activity(&capture->request, &watch, &after);
    /* Later than the waits that are counted, since it has run on meanwhile. */
    uint64_t now_ns = monotonic_ns();
    watch_close(&watch);
    if (!is_known || after.waiting_ns < capture->look.waiting_ns)
        return THREAD_RUNNING;
    return thread_state_by_wait(after.waiting_ns - capture->look.waiting_ns,
                                now_ns - capture->look.awake_ns);
}

static enum capture_result copy_stopped(struct capture *capture, struct snapshot *snapshot)
{
    struct stop *stop = &capture->stop;
    int err = registers_read_stopped(stop->tid, &snapshot->registers);
    if (!err)
        copy_stack(&capture->request, snapshot);
    if (!err && capture->was_running && !stop->is_group_stop)
        registers_hide_stop(stop->tid);
    stop_release(stop);
    capture->pause_ns = stop->released_ns - stop->running_ns;
    capture->state = state_of_stopped(capture);
    return err == -ENOTSUP ? CAPTURE_REFUSED : err ? CAPTURE_GONE : CAPTURE_DONE;
}

static enum capture_result await_and_copy(struct capture *capture, struct snapshot *snapshot,
                                          uint64_t wait_ns)
{
    int err = stop_await(&capture->stop, wait_ns);
    if (err == -EAGAIN)
        return CAPTURE_PENDING;
    return err ? CAPTURE_GONE : copy_stopped(capture, snapshot);
}

static enum capture_result stop_and_copy(struct capture *capture, const struct watch *watch,
                                         struct snapshot *snapshot)
{
    const struct capture_request *request = &capture->request;
    capture->look = watch->look;
    int err = stop_request(request->process_id, request->tid, &capture->stop);
    if (err)
        return err == -ESRCH ? CAPTURE_GONE : CAPTURE_REFUSED;
    return await_and_copy(capture, snapshot, STOP_WAIT_NS);
}

enum capture_result capture_thread(struct capture *capture, const struct capture_request *request,
                                   struct watch *watch, struct snapshot *snapshot)
{
    struct activity before;
    *capture = (struct capture){.request = *request, .syscall_number = -1};
    bool is_known = read_activity(request, watch, &before);
    if (is_known && (!request->may_stop || !watch->look.is_known))
        watch->look = (struct look){true, request->awake_ns, before.waiting_ns};
    if (is_known && !request->must_stop && is_unmoved(request, watch, &before))
        return CAPTURE_UNMOVED;
    watch->is_asleep = false;
    if (request->must_stop && !request->may_stop)
        return CAPTURE_RUNNING;
    if (!make_room(snapshot, request->stack_limit))
        return CAPTURE_REFUSED;
    int err = is_known ? copy_asleep(capture, watch, &before, snapshot) : -EAGAIN;
    if (err == -ESRCH)
        return CAPTURE_GONE;
    if (!err && !request->must_stop)
        return CAPTURE_DONE;
    if (!request->may_stop)
        return CAPTURE_RUNNING;
    capture->was_running = err != 0;
    watch->is_asleep = false;
    return stop_and_copy(capture, watch, snapshot);
}

enum capture_result capture_collect(struct capture *capture, struct snapshot *snapshot)
{
    if (!make_room(snapshot, capture->request.stack_limit))
        return CAPTURE_PENDING;
    return await_and_copy(capture, snapshot, 0);
}
