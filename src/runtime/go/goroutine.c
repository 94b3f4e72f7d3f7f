#include "runtime/go/goroutine.h"
#include "base/bytes.h"
#include "proc/memory.h"

#include <string.h>

/* runtime/runtime2.go. The values that are not here mean that the goroutine does not exist: idle,
 * dead, and since Go 1.26 an extra one for threads of C. */
enum {
    STATUS_RUNNABLE = 1,
    STATUS_RUNNING = 2,
    STATUS_SYSCALL = 3,
    STATUS_WAITING = 4,
    STATUS_COPYSTACK = 8, /* newstack, or shrinkstack: its stack moves */
    STATUS_PREEMPTED = 9, /* suspendG stopped it and has not let it go on yet */
    STATUS_LEAKED = 10,   /* it waits, and nothing can wake it */
    STATUS_SCAN = 0x1000, /* beside one of these: the collector reads its stack, which stays */
};

/* maxstacksize of runtime/stack.go, which debug.SetMaxStack may raise. */
#define STACK_BYTES_MAX ((uint64_t)16 << 30)

void goroutine_parse(const struct go_layout *layout, const unsigned char *bytes,
                     struct goroutine *ret_goroutine)
{
    uint32_t status;
    memcpy(&status, bytes + layout->g_status, sizeof status);
    *ret_goroutine = (struct goroutine){
        .stack_low = load_word(bytes, 0),
        .stack_high = load_word(bytes, 8),
        .m = load_word(bytes, layout->g_m),
        .sp = load_word(bytes, layout->g_sched),
        .pc = load_word(bytes, layout->g_sched + 8u),
        .frame_pointer = load_word(bytes, (size_t)layout->g_sched + layout->gobuf_frame_pointer),
        .id = load_word(bytes, layout->g_id),
        .parent = layout->g_parent == GO_NOWHERE ? 0 : load_word(bytes, layout->g_parent),
        .creator = load_word(bytes, layout->g_creator),
        .start = load_word(bytes, layout->g_start),
        .labels = load_word(bytes, layout->g_labels),
        .waiting = load_word(bytes, layout->g_waiting),
        .waits_since = (int64_t)load_word(bytes, layout->g_wait_since),
        .status = status & ~(uint32_t)STATUS_SCAN,
        .reason = bytes[layout->g_wait_reason],
        .sequence = bytes[layout->g_sequence],
        .is_locked = load_word(bytes, layout->g_locked) != 0,
    };
}

bool goroutine_read(const struct go_layout *layout, uint64_t address, pid_t tid,
                    const struct stack_areas *areas, struct goroutine *ret_goroutine)
{
    unsigned char bytes[GOROUTINE_BYTES_MAX];
    size_t wanted = goroutine_bytes(layout);
    if (memory_read(tid, areas, address, bytes, wanted) != wanted)
        return false;
    goroutine_parse(layout, bytes, ret_goroutine);
    return true;
}

static bool has_stack(const struct goroutine *goroutine)
{
    return goroutine->stack_low < goroutine->stack_high &&
           goroutine->stack_high - goroutine->stack_low <= STACK_BYTES_MAX &&
           goroutine->sp >= goroutine->stack_low && goroutine->sp < goroutine->stack_high &&
           goroutine->sp % sizeof(uint64_t) == 0;
}

/* A waiting goroutine can still have its thread: between park_m's two steps, and while the runtime
 * works for it on the thread's own stack (isWaitingForSuspendG in runtime2.go). */
enum goroutine_where goroutine_where(const struct goroutine *goroutine)
{
    switch (goroutine->status) {
    case STATUS_RUNNING:
    case STATUS_SYSCALL:
        return GOROUTINE_ON_THREAD;
    case STATUS_RUNNABLE:
    case STATUS_WAITING:
    case STATUS_PREEMPTED:
    case STATUS_LEAKED:
        if (goroutine->m)
            return GOROUTINE_ON_THREAD;
        return has_stack(goroutine) ? GOROUTINE_PARKED : GOROUTINE_SENSELESS;
    case STATUS_COPYSTACK:
        return GOROUTINE_MOVING;
    default:
        return GOROUTINE_NOWHERE;
    }
}

bool goroutine_is_in_call(const struct goroutine *goroutine)
{
    return goroutine->status == STATUS_SYSCALL;
}

bool goroutine_is_runnable(const struct goroutine *goroutine)
{
    return goroutine->status == STATUS_RUNNABLE || goroutine->status == STATUS_PREEMPTED;
}

struct goroutine_rest goroutine_rest(const struct goroutine *goroutine)
{
    return (struct goroutine_rest){
        .id = goroutine->id,
        .sp = goroutine->sp,
        .pc = goroutine->pc,
        .stack_high = goroutine->stack_high,
        .status = (uint8_t)goroutine->status,
        .reason = goroutine->reason,
        .sequence = goroutine->sequence,
    };
}

/* If the collector has moved its stack (shrinkstack), that is at another address. */
bool goroutine_has_stayed(const struct goroutine_rest *before, const struct goroutine_rest *after)
{
    return before->id == after->id && before->sequence == after->sequence &&
           before->status == after->status && before->reason == after->reason &&
           before->sp == after->sp && before->pc == after->pc &&
           before->stack_high == after->stack_high;
}
