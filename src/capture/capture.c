#include "capture/capture.h"
#include "target/memory.h"
#include "target/procfs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* How long a tick waits for one thread to stop, before it goes on with others. */
#define STOP_WAIT_NS 1000000

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

static void copy_stack(struct snapshot *snapshot, pid_t tid, size_t limit)
{
    snapshot->stack_address = registers_sp(&snapshot->registers);
    snapshot->stack_bytes = memory_read(tid, snapshot->stack_address, snapshot->stack, limit);
    snapshot->stack_is_limited = snapshot->stack_bytes == limit;
}

static enum capture_result copy_stopped(struct capture *capture, struct snapshot *snapshot)
{
    struct stop *stop = &capture->stop;
    int err = registers_read_stopped(stop->tid, &snapshot->registers);
    if (!err)
        copy_stack(snapshot, stop->tid, capture->stack_limit);
    stop_release(stop);
    capture->pause_ns = monotonic_ns() - stop->running_ns;
    return err ? CAPTURE_GONE : CAPTURE_DONE;
}

static enum capture_result await_and_copy(struct capture *capture, struct snapshot *snapshot,
                                          uint64_t wait_ns)
{
    int err = stop_await(&capture->stop, wait_ns);
    if (err == -EAGAIN)
        return CAPTURE_PENDING;
    return err ? CAPTURE_GONE : copy_stopped(capture, snapshot);
}

bool capture_parse_syscall(const char *line, struct registers *ret_registers)
{
    uint64_t arguments[6] = {0}, sp, pc;
    if (sscanf(line, "-1 %" SCNx64 " %" SCNx64, &sp, &pc) == 2) {
        registers_set_blocked(ret_registers, arguments, sp, pc);
        /* Outside a call the other registers are anything. */
        ret_registers->known = 1ull << architecture.sp | 1ull << architecture.pc;
        return true;
    }
    int fields = sscanf(line,
                        "%*u %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
                        " %" SCNx64 " %" SCNx64,
                        &arguments[0], &arguments[1], &arguments[2], &arguments[3], &arguments[4],
                        &arguments[5], &sp, &pc);
    if (fields != 8)
        return false;
    registers_set_blocked(ret_registers, arguments, sp, pc);
    return true;
}

/* Without a stop. The caller has seen it in uninterruptible sleep; where it has woken since,
 * `syscall` says "running" or shows another place. */
static bool copy_blocked(struct capture *capture, int proc_fd, pid_t tid, struct snapshot *snapshot)
{
    char name[48], line[256];
    struct registers *before = &snapshot->registers, after;
    snprintf(name, sizeof name, "task/%d/syscall", tid);
    if (procfs_read(proc_fd, name, line, sizeof line) <= 0 || !capture_parse_syscall(line, before))
        return false;
    copy_stack(snapshot, tid, capture->stack_limit);
    return procfs_read(proc_fd, name, line, sizeof line) > 0 &&
           capture_parse_syscall(line, &after) && registers_sp(&after) == registers_sp(before) &&
           registers_pc(&after) == registers_pc(before);
}

enum capture_result capture_thread(struct capture *capture, pid_t process_id, int proc_fd,
                                   pid_t tid, struct snapshot *snapshot)
{
    char name[48];
    struct proc_stat stat;
    snprintf(name, sizeof name, "task/%d/stat", tid);
    capture->pause_ns = 0;
    if (procfs_stat(proc_fd, name, &stat) || stat.state == 'Z' || stat.state == 'X')
        return CAPTURE_GONE;
    capture->state = stat.state;
    if (!make_room(snapshot, capture->stack_limit))
        return CAPTURE_REFUSED;
    if (stat.state == 'D' && copy_blocked(capture, proc_fd, tid, snapshot))
        return CAPTURE_DONE;
    int err = stop_request(process_id, tid, &capture->stop);
    if (err)
        return err == -ESRCH ? CAPTURE_GONE : CAPTURE_REFUSED;
    return await_and_copy(capture, snapshot, STOP_WAIT_NS);
}

enum capture_result capture_collect(struct capture *capture, struct snapshot *snapshot)
{
    if (!make_room(snapshot, capture->stack_limit))
        return CAPTURE_PENDING;
    return await_and_copy(capture, snapshot, 0);
}
