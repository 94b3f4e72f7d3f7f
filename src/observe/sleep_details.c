#include "observe/sleep_details.h"
#include "proc/kernel_stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

/* The minimum time between two reads of how often a thread was preempted. */
#define PREEMPTIONS_EACH_NS 1000000000u

/* Reads where in the kernel a thread waits uninterruptibly. Read once per sleep, so the file is not
 * worth a descriptor. */
static void read_wait_channel(struct watch_place place, struct observation *observation)
{
    struct thread_file wchan = {0};
    char line[256];
    observation->wait.channel[0] = '\0';
    place.keep_fds_below = 0;
    /* "0" if the kernel does not show it (proc(5)). */
    if (observation->state == THREAD_UNINTERRUPTIBLE &&
        watch_read(&place, &wchan, "wchan", line, sizeof line) > 0 && strcmp(line, "0") != 0)
        snprintf(observation->wait.channel, WAIT_CHANNEL_BYTES, "%.*s", WAIT_CHANNEL_BYTES - 1,
                 line);
}

/* Returns 0 or -ENOMEM. A stack that can't be read is empty. */
static int read_kernel_stack(struct watch_place place, struct snapshot *snapshot)
{
    struct thread_file stack = {0};
    if (!snapshot->kernel_stack && !(snapshot->kernel_stack = malloc(KERNEL_STACK_BYTES)))
        return -ENOMEM;
    place.keep_fds_below = 0;
    if (watch_read(&place, &stack, "stack", snapshot->kernel_stack, KERNEL_STACK_BYTES) < 0)
        snapshot->kernel_stack[0] = '\0';
    kernel_stack_parse(snapshot->kernel_stack);
    return 0;
}

static void read_memory(const struct subject *subject, struct observation *observation)
{
    struct memory_range ranges[CALL_RANGES_MAX];
    unsigned count = call_ranges(&observation->wait.call, &observation->wait.memory, ranges);
    memory_read_many(subject->tid, subject->stack_areas, ranges, count);
    call_note_read(&observation->wait.memory, ranges, count);
}

void sleep_details_read_call(const struct subject *subject, struct observation *observation)
{
    struct call_target *call = &observation->wait.call;
    observation->wait.has_call = true;
    switch (call->kind) {
    case CALL_FUTEX:
        read_memory(subject, observation);
        return;
    case CALL_POLL:
    case CALL_SELECT:
        read_memory(subject, observation);
        call_note_polled(call, &observation->wait.memory);
        observation->wait.has_call = call->count > 0;
        if (call->kind == CALL_FILE)
            call_read_link(call, subject->proc_fd, &observation->wait.memory);
        return;
    case CALL_FILE:
        call_read_link(call, subject->proc_fd, &observation->wait.memory);
        return;
    case CALL_EPOLL:
    case CALL_PROCESS:
    case CALL_SEMAPHORES:
    case CALL_MESSAGES:
        return;
    case CALL_OTHER:
    case CALL_SLEEP:
    case CALL_SIGNAL:
        observation->wait.has_call = false;
        return;
    }
}

void sleep_details_read_preemptions(const struct watch_place *place, struct watch *watch,
                                    struct observation *observation)
{
    uint64_t now_ns = observation->now.at_ns;
    bool is_due =
        !watch->preemptions_read_ns || now_ns >= watch->preemptions_read_ns + PREEMPTIONS_EACH_NS;
    if (observation->wait.call.kind != CALL_FUTEX || !watch->was_read || !is_due)
        return;
    watch->preemptions_read_ns = now_ns;
    observation->wait.has_preemptions =
        watch_read_preemptions(place, watch, &observation->wait.preemptions);
}

/* After a stop, a call with a timeout continues as restart_syscall(2), with the same registers. */
static long call_number(struct watch *watch, const struct observation *observation)
{
    const struct registers *registers = &observation->snapshot->registers;
    struct watched_call call = {registers_sp(registers), registers_pc(registers),
                                observation->wait.syscall_number};
    if (call.number == SYS_restart_syscall && call.sp == watch->call.sp &&
        call.pc == watch->call.pc)
        call.number = watch->call.number;
    watch->call = call;
    return call.number;
}

int sleep_details_read(const struct subject *subject, const struct watch_place *place,
                       struct watch *watch, struct observation *observation)
{
    struct snapshot *snapshot = observation->snapshot;
    observation->wait.syscall_number = call_number(watch, observation);
    observation->wait.call =
        call_target_of(observation->wait.syscall_number, snapshot->registers.call_arguments);
    read_wait_channel(*place, observation);
    if (thread_state_waits(observation->state))
        sleep_details_read_call(subject, observation);
    if (subject->wants_kernel_stack && read_kernel_stack(*place, snapshot))
        return -ENOMEM;
    subject_read_context(subject, &watch->thread_pointer, snapshot);
    return 0;
}

void sleep_details_drop(const struct subject *subject, struct observation *observation)
{
    struct snapshot *snapshot = observation->snapshot;
    if (subject->context && snapshot->context)
        snapshot->context->state = CONTEXT_CHANGED;
    observation->wait.channel[0] = '\0';
    observation->wait.has_call = false;
    if (snapshot->kernel_stack)
        snapshot->kernel_stack[0] = '\0';
}
