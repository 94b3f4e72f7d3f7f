#include "observe/switches.h"
#include "observe/ring.h"

#include <errno.h>
#include <stdlib.h>

#define ARMED_MAX 64
/* A page has room for some twenty pairs of records; the newest one counts. */
#define RING_BYTES 4096u
/* The maximum time from when we take a thread's CPU until we read the clock. */
#define WAKING_NS 100000

struct armed {
    uint32_t thread;
    struct ring ring;
};

/* Where a thread left its CPU. */
struct departure {
    uint64_t at_ns;
    bool is_preempted; /* it lost the CPU, and did not go to sleep */
    struct registers *registers;
};

struct switches {
    struct armed armed[ARMED_MAX];
    size_t count;
};

static struct armed *find(const struct switches *switches, uint32_t thread)
{
    for (size_t i = 0; i < switches->count; i++) {
        if (switches->armed[i].thread == thread)
            return (struct armed *)&switches->armed[i];
    }
    return NULL;
}

int switches_arm(struct switches *switches, uint32_t thread, pid_t tid)
{
    const struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
        .sample_period = 1,
        .sample_type = RING_SAMPLE_TYPE,
        .sample_regs_user = registers_sample_mask,
        .context_switch = 1,
        .write_backward = 1,
    };
    if (find(switches, thread))
        return 0;
    if (switches->count == ARMED_MAX)
        return -ENOSPC;
    struct armed armed = {.thread = thread};
    int err = ring_open(&attr, tid, -1, RING_BYTES, RING_OVERWRITTEN, &armed.ring);
    if (!err)
        switches->armed[switches->count++] = armed;
    return err;
}

bool switches_is_armed(const struct switches *switches, uint32_t thread)
{
    return switches && find(switches, thread);
}

void switches_disarm(struct switches *switches, uint32_t thread)
{
    struct armed *armed = switches ? find(switches, thread) : NULL;
    if (!armed)
        return;
    ring_close(&armed->ring);
    *armed = switches->armed[--switches->count];
}

/* Reads the newest records: when the thread leaves a CPU, the kernel writes a sample, followed by a
 * PERF_RECORD_SWITCH with PERF_RECORD_MISC_SWITCH_OUT (perf_event_task_sched_out in the kernel's
 * include/linux/perf_event.h); when it comes back, a PERF_RECORD_SWITCH without that flag. Returns
 * OUTCOME_OBSERVED and fills in the departure, or returns OUTCOME_RUNNING or OUTCOME_REFUSED. */
static enum outcome read_newest(const struct ring *ring, uint64_t head,
                                struct departure *ret_departure)
{
    struct record at, sample;
    struct sample_head values;
    size_t end;
    if (!ring_at(ring, head, &at) || at.header.type != PERF_RECORD_SWITCH)
        return OUTCOME_REFUSED;
    if (!(at.header.misc & PERF_RECORD_MISC_SWITCH_OUT))
        return OUTCOME_RUNNING;
    if (!ring_at(ring, head + at.header.size, &sample) ||
        sample.header.type != PERF_RECORD_SAMPLE ||
        !record_read(&sample, 0, &values, sizeof values) ||
        !record_read_registers(&sample, ret_departure->registers, &end))
        return OUTCOME_REFUSED;
    ret_departure->at_ns = ring_time(ring, values.at_ns);
    ret_departure->is_preempted = at.header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    return OUTCOME_OBSERVED;
}

enum outcome switches_observe(const struct switches *switches, const struct subject *subject,
                              struct observation *observation)
{
    const struct armed *armed = find(switches, subject->thread);
    struct snapshot *snapshot = observation->snapshot;
    struct departure departure = {.registers = &snapshot->registers};
    if (!armed)
        return OUTCOME_REFUSED;
    uint64_t head = ring_head(&armed->ring);
    enum outcome outcome = read_newest(&armed->ring, head, &departure);
    if (outcome != OUTCOME_OBSERVED)
        return outcome;
    /* It left the CPU after it was looked at, so whether it is asleep now is not known. */
    if (departure.at_ns >= subject->look.at_ns)
        return OUTCOME_RUNNING;
    /* It would still be running if we had not woken up on its CPU. */
    if (departure.is_preempted && departure.at_ns + WAKING_NS >= subject->awake_ns)
        return OUTCOME_RUNNING;
    subject_copy(subject, snapshot);
    uint64_t thread_pointer = 0;
    subject_read_context(subject, &thread_pointer, snapshot);
    if (ring_head(&armed->ring) != head)
        return OUTCOME_RUNNING;
    observation->evidence = EVIDENCE_WAITING;
    observation->state = THREAD_RUNNABLE;
    observation->wait.syscall_number = -1;
    observation->wait.channel[0] = '\0';
    return OUTCOME_OBSERVED;
}

void switches_complete(const struct switches *switches, uint32_t thread,
                       struct registers *registers)
{
    const struct armed *armed = switches ? find(switches, thread) : NULL;
    struct registers all;
    struct departure departure = {.registers = &all};
    if (!armed ||
        read_newest(&armed->ring, ring_head(&armed->ring), &departure) != OUTCOME_OBSERVED ||
        registers_pc(&all) != registers_pc(registers) ||
        registers_sp(&all) != registers_sp(registers))
        return;
    for (unsigned i = 0; i < architecture.register_count; i++) {
        if (registers_has(&all, i) && !registers_has(registers, i))
            registers_set(registers, i, all.values[i]);
    }
}

void switches_free(struct switches *switches)
{
    if (!switches)
        return;
    for (size_t i = 0; i < switches->count; i++)
        ring_close(&switches->armed[i].ring);
    free(switches);
}

int switches_new(struct switches **ret_switches)
{
    struct switches *switches = calloc(1, sizeof *switches);
    if (!switches)
        return -ENOMEM;
    *ret_switches = switches;
    return 0;
}
