#include "observe/bpf/departure.h"

#include <string.h>

static enum thread_state state_of(uint32_t state)
{
    if (state == 0)
        return THREAD_RUNNABLE;
    if (state & (SWITCH_STATE_STOPPED | SWITCH_STATE_TRACED))
        return THREAD_STOPPED;
    return state & SWITCH_STATE_UNINTERRUPTIBLE ? THREAD_UNINTERRUPTIBLE : THREAD_SLEEPING;
}

void departure_translate(const struct switch_departure *raw, const struct clock_offsets *offsets,
                         struct departure *ret_departure)
{
    uint64_t ahead_ns = offsets->monotonic_ns;
    *ret_departure = (struct departure){
        .tid = (pid_t)raw->tid,
        .process_id = (pid_t)raw->process_id,
        .start_ns = raw->start_ns + offsets->boot_ns,
        .number = raw->number,
        .out_ns = raw->out_ns + ahead_ns,
        .runnable_ns = raw->runnable_ns ? raw->runnable_ns + ahead_ns : 0,
        .moved_ns = raw->moved_ns ? raw->moved_ns + ahead_ns : 0,
        .in_ns = raw->in_ns ? raw->in_ns + ahead_ns : 0,
        .switches = raw->switches,
        .runnable_cpu = raw->runnable_cpu,
        .state = state_of(raw->state),
    };
    departure_registers(raw->words, &ret_departure->registers, &ret_departure->syscall_number);
}

static enum wake_thread kind_of(uint32_t kind)
{
    return kind == SWITCH_WAKER_THREAD          ? WAKE_BY_THREAD
           : kind == SWITCH_WAKER_KERNEL_THREAD ? WAKE_BY_KERNEL_THREAD
                                                : WAKE_BY_IDLE;
}

void cpu_user_read(const struct switch_stay *raw, struct cpu_user *ret_user)
{
    *ret_user = (struct cpu_user){
        .is_known = true,
        .kind = kind_of(raw->kind),
        .process_id = (pid_t)raw->process_id,
        .tid = (pid_t)raw->tid,
    };
    memcpy(ret_user->name, raw->name, sizeof raw->name - 1);
    memcpy(ret_user->process_name, raw->process_name, sizeof raw->process_name - 1);
}

_Static_assert(sizeof((struct switch_stay){0}.name) == CPU_USER_NAME_BYTES, "names have room");
_Static_assert(SWITCH_CHAIN_MAX == WAKE_CHAIN_MAX &&
                   sizeof(struct switch_wake) <= SWITCH_FUTEX_BYTES,
               "a wake takes the place of a futex");

static void read_chain(const struct switch_chain *raw, uint64_t ret_chain[WAKE_CHAIN_MAX],
                       unsigned *ret_depth)
{
    *ret_depth = raw->depth < WAKE_CHAIN_MAX ? raw->depth : WAKE_CHAIN_MAX;
    for (unsigned i = 0; i < *ret_depth; i++)
        ret_chain[i] =
            raw->first + (uint64_t)(int64_t)(int32_t)(raw->addresses[i] - (uint32_t)raw->first);
}

static void read_wake(const struct switch_message *message, const struct clock_offsets *offsets,
                      struct past_departure *past)
{
    const struct switch_wake *raw = &message->wake;
    struct wake_seen *wake = &past->wake;
    past->woken_process_id = (pid_t)raw->process_id;
    past->woken_tid = (pid_t)raw->tid;
    *wake = (struct wake_seen){
        .departed_ns = raw->out_ns ? raw->out_ns + offsets->monotonic_ns : 0,
        .process_id = past->departure.process_id,
        .tid = past->departure.tid,
    };
    wake->thread = kind_of(raw->waker);
    memcpy(wake->name, raw->name, sizeof raw->name);
    wake->name[sizeof raw->name - 1] = '\0';
    read_chain(&message->chain, wake->chain, &wake->chain_depth);
}

bool past_departure_read(const void *data, size_t bytes, const struct clock_offsets *offsets,
                         struct past_departure *ret_past)
{
    struct switch_message message;
    if (bytes < sizeof message)
        return false;
    memcpy(&message, data, sizeof message);
    size_t other_end = message.other_bytes ? SWITCH_OTHER_OFFSET + (size_t)message.other_bytes : 0;
    size_t frames_end = message.frame_count ? SWITCH_OTHER_OFFSET +
                                                  message.frame_count * sizeof(struct switch_frame)
                                            : 0;
    bytes -= sizeof message;
    if (message.stack_bytes > bytes || other_end > bytes || frames_end > bytes)
        return false;
    departure_translate(&message.departure, offsets, &ret_past->departure);
    ret_past->last_tick = message.last_tick;
    ret_past->slot = message.slot;
    ret_past->generation = message.generation;
    ret_past->stack = (const unsigned char *)data + sizeof message;
    ret_past->stack_bytes = message.stack_bytes;
    ret_past->other_stack = ret_past->stack + SWITCH_OTHER_OFFSET;
    ret_past->other_address = message.other_address;
    ret_past->other_bytes = message.other_bytes;
    ret_past->has_one_stack = message.has_one_stack;
    ret_past->frames = ret_past->other_stack;
    ret_past->frame_count = message.frame_count;
    ret_past->frames_state = message.frames_state;
    ret_past->futex = message.futex_bytes
                          ? (const unsigned char *)data + offsetof(struct switch_message, futex)
                          : NULL;
    ret_past->kind = (enum switch_message_kind)message.kind;
    ret_past->chain_depth = 0;
    if (ret_past->kind == SWITCH_MESSAGE_WAKE)
        read_wake(&message, offsets, ret_past);
    else
        read_chain(&message.chain, ret_past->chain, &ret_past->chain_depth);
    ret_past->has_futex_before = message.futex_bytes == SWITCH_FUTEX_BYTES;
    return true;
}
