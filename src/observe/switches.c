#include "observe/switches.h"
#include "base/clock.h"
#include "observe/ring.h"
#include "observe/sleep_details.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>

/* The maximum time from when we take a thread's CPU until we read the clock. */
#define WAKING_NS 100000

/* More records than the ring holds. */
#define RECORDS_MAX 2048
/* How many places where a thread was found asleep are remembered. */
#define SLEEPS_MAX 8
/* A look reads its account of the thread within this time before it reads the clock. */
#define READING_NS 5000
/* A look that comes this long after its tick says more about the time since than about the tick. */
#define LATE_NS 1000000
/* After a refusal no event of its kind is tried for this long: each try interrupts a thread. */
#define REFUSAL_HOLDS_NS 1000000000u

#define EVENTS_MAX 64 /* of a kind */
static const struct {
    size_t max, ring_bytes;
    uint32_t stack_bytes; /* how much of the stack is recorded */
} limits[SWITCHES_KINDS] = {
    /* Room for some twenty pairs of records; the newest one counts. */
    [SWITCHES_ALWAYS] = {EVENTS_MAX, 4096, 0},
    /* Opening a window interrupts the CPU of each of these threads. Room for seven departures: more
     * than there are between a tick and a look. */
    [SWITCHES_IN_WINDOW] = {16, 32768, 4096},
};

/* Where a thread left its CPU. */
struct departure {
    uint64_t at_ns;
    bool is_preempted; /* it lost the CPU, and did not go to sleep */
    struct registers *registers;
};

/* Where a look has found the thread asleep, and how: records do not say that. */
struct seen_sleep {
    struct watched_call call; /* number -1: several calls sleep there */
    enum thread_state state;
};

/* A thread's event. */
struct thread_event {
    uint32_t thread;
    struct ring ring;
    /* With a window: */
    bool is_open;
    struct seen_sleep sleeps[SLEEPS_MAX];
    size_t sleep_count; /* so far; the last SLEEPS_MAX are kept */
};

/* The events of a kind. */
struct event_table {
    struct thread_event items[EVENTS_MAX];
    size_t count;
    /* Why an event could last not be had, and when. The kinds take different amounts of memory. */
    int refusal; /* a negative errno; 0: it could be had */
    uint64_t refused_ns;
};

struct switches {
    struct event_table kinds[SWITCHES_KINDS];
    uint64_t opened_ns;   /* the windows; 0: they are closed */
    int keeper_fd_plus_1; /* 0: none */
};

static struct thread_event *find(const struct switches *switches, enum switches_kind kind,
                                 uint32_t thread)
{
    const struct event_table *events = switches ? &switches->kinds[kind] : NULL;
    for (size_t i = 0; events && i < events->count; i++) {
        if (events->items[i].thread == thread)
            return (struct thread_event *)&events->items[i];
    }
    return NULL;
}

/* ---- The events ---- */

/* When the first event of a thread on this machine is opened, the kernel waits until each CPU has
 * switched (account_event in its kernel/events/core.c), and a second after the last one is closed
 * the next one counts as the first. So one of our own stays open. */
static void keep_events(struct switches *switches, struct perf_event_attr attr)
{
    if (switches->keeper_fd_plus_1)
        return;
    attr.disabled = 1;
    int fd = ring_open_event(&attr, 0, -1);
    switches->keeper_fd_plus_1 = fd < 0 ? 0 : fd + 1;
}

static int open_event(struct switches *switches, enum switches_kind kind, pid_t tid,
                      struct ring *ret_ring)
{
    struct event_table *events = &switches->kinds[kind];
    const struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
        .sample_period = 1,
        .sample_type = RING_SAMPLE_TYPE | (limits[kind].stack_bytes ? PERF_SAMPLE_STACK_USER : 0),
        .sample_regs_user = registers_sample_mask,
        .sample_stack_user = limits[kind].stack_bytes,
        .context_switch = 1,
        .write_backward = 1,
        .disabled = kind == SWITCHES_IN_WINDOW, /* until its window opens */
    };
    if (events->refusal && monotonic_ns() < events->refused_ns + REFUSAL_HOLDS_NS)
        return events->refusal;
    keep_events(switches, attr);
    int err = ring_open(&attr, tid, -1, limits[kind].ring_bytes, RING_OVERWRITTEN, ret_ring);
    bool has_ended = err == -ESRCH || err == -ENODEV;
    events->refusal = has_ended ? 0 : err;
    events->refused_ns = monotonic_ns();
    return err;
}

int switches_add(struct switches *switches, enum switches_kind kind, uint32_t thread, pid_t tid)
{
    struct thread_event event = {.thread = thread};
    if (!switches || find(switches, kind, thread))
        return 0;
    struct event_table *events = &switches->kinds[kind];
    if (events->count == limits[kind].max)
        return -ENOSPC;
    int err = open_event(switches, kind, tid, &event.ring);
    if (!err)
        events->items[events->count++] = event;
    return err;
}

bool switches_have(const struct switches *switches, enum switches_kind kind, uint32_t thread)
{
    return find(switches, kind, thread);
}

void switches_drop(struct switches *switches, enum switches_kind kind, uint32_t thread)
{
    struct thread_event *event = find(switches, kind, thread);
    if (!event)
        return;
    struct event_table *events = &switches->kinds[kind];
    ring_close(&event->ring);
    *event = events->items[--events->count];
}

static void set_open(struct thread_event *window, bool is_open)
{
    if (window->is_open != is_open)
        ioctl(window->ring.fd, is_open ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
    window->is_open = is_open;
}

uint64_t switches_open_windows(struct switches *switches, uint64_t begin_ns)
{
    struct event_table *windows = switches ? &switches->kinds[SWITCHES_IN_WINDOW] : NULL;
    if (!windows || !windows->count || switches->opened_ns)
        return UINT64_MAX;
    uint64_t now_ns = monotonic_ns();
    if (now_ns < begin_ns)
        return begin_ns;
    switches->opened_ns = now_ns;
    for (size_t i = 0; i < windows->count; i++)
        set_open(&windows->items[i], true);
    return UINT64_MAX;
}

void switches_close_windows(struct switches *switches)
{
    struct event_table *windows = switches ? &switches->kinds[SWITCHES_IN_WINDOW] : NULL;
    for (size_t i = 0; windows && i < windows->count; i++)
        set_open(&windows->items[i], false);
    if (windows)
        switches->opened_ns = 0;
}

int switches_new(struct switches **ret_switches)
{
    *ret_switches = calloc(1, sizeof **ret_switches);
    return *ret_switches ? 0 : -ENOMEM;
}

void switches_free(struct switches *switches)
{
    if (!switches)
        return;
    for (unsigned kind = 0; kind < SWITCHES_KINDS; kind++) {
        for (size_t i = 0; i < switches->kinds[kind].count; i++)
            ring_close(&switches->kinds[kind].items[i].ring);
    }
    if (switches->keeper_fd_plus_1)
        ring_close_event(switches->keeper_fd_plus_1 - 1, 0);
    free(switches);
}

/* ---- Events that are always on ---- */

/* When the thread leaves a CPU, the kernel writes a sample, followed by a PERF_RECORD_SWITCH with
 * PERF_RECORD_MISC_SWITCH_OUT (perf_event_task_sched_out in its include/linux/perf_event.h); when
 * it comes back, a PERF_RECORD_SWITCH without that flag. Reads the newest records. Returns
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
    const struct thread_event *event = find(switches, SWITCHES_ALWAYS, subject->thread);
    struct snapshot *snapshot = observation->snapshot;
    struct departure departure = {.registers = &snapshot->registers};
    if (!event)
        return OUTCOME_REFUSED;
    uint64_t head = ring_head(&event->ring);
    enum outcome outcome = read_newest(&event->ring, head, &departure);
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
    if (ring_head(&event->ring) != head)
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
    const struct thread_event *event = find(switches, SWITCHES_ALWAYS, thread);
    struct registers all;
    struct departure departure = {.registers = &all};
    if (!event ||
        read_newest(&event->ring, ring_head(&event->ring), &departure) != OUTCOME_OBSERVED ||
        registers_pc(&all) != registers_pc(registers) ||
        registers_sp(&all) != registers_sp(registers))
        return;
    for (unsigned i = 0; i < architecture.register_count; i++) {
        if (registers_has(&all, i) && !registers_has(registers, i))
            registers_set(registers, i, all.values[i]);
    }
}

/* ---- Windows ---- */

/* Where the thread was at a tick. */
enum tick_state {
    TICK_UNKNOWN,
    TICK_AWAKE, /* on a CPU, or waiting for the one that it had lost */
    TICK_ASLEEP,
    TICK_ASLEEP_BEFORE, /* since before the window */
};

struct since_tick {
    uint64_t sample_at;   /* TICK_ASLEEP: in the ring */
    uint64_t returned_ns; /* when the thread was first back on a CPU; 0: it was not */
    uint64_t returns;     /* how often it has got a CPU before the look */
    bool has_moved;       /* it has got or left one before the look */
};

/* Whether newer records have not overwritten the record. */
static bool is_whole(const struct record *record)
{
    const struct ring *ring = record->ring;
    return record->at + record->header.size - ring_head(ring) <= ring->data_bytes;
}

/* When a PERF_RECORD_SWITCH was written; 0: it is another record. After its header it has the same
 * as a sample, up to the time. */
static uint64_t switched_ns(const struct record *record)
{
    uint64_t at_ns;
    return record->header.type == PERF_RECORD_SWITCH &&
                   record_read(record, offsetof(struct sample_head, at_ns), &at_ns, sizeof at_ns)
               ? ring_time(record->ring, at_ns)
               : 0;
}

/* Reads the records, newest first. */
static enum tick_state find_tick(uint64_t opened_ns, const struct ring *ring, uint64_t tick_ns,
                                 uint64_t look_ns, struct since_tick *ret_since)
{
    struct since_tick since = {.sample_at = ring_head(ring)};
    enum tick_state before = TICK_UNKNOWN; /* before the oldest record so far */
    struct record record;
    for (unsigned i = 0; i < RECORDS_MAX && ring_at(ring, since.sample_at, &record); i++) {
        *ret_since = since;
        if (!is_whole(&record))
            return TICK_UNKNOWN;
        since.sample_at += record.header.size;
        if (record.header.type == PERF_RECORD_SAMPLE)
            continue;
        uint64_t at_ns = switched_ns(&record);
        bool has_left = record.header.misc & PERF_RECORD_MISC_SWITCH_OUT;
        bool is_preempted = record.header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
        if (at_ns < opened_ns)
            return before;
        if (at_ns <= tick_ns) {
            ret_since->sample_at = since.sample_at;
            return has_left && !is_preempted ? TICK_ASLEEP : TICK_AWAKE;
        }
        before = has_left ? TICK_AWAKE : TICK_ASLEEP_BEFORE;
        since.returned_ns = has_left ? since.returned_ns : at_ns;
        since.returns += !has_left && at_ns + READING_NS <= look_ns;
        since.has_moved |= at_ns <= look_ns;
    }
    *ret_since = since;
    return before;
}

/* Returns false and leaves the snapshot unchanged if the sample has been overwritten. */
static bool read_sample(const struct ring *ring, uint64_t at, struct snapshot *snapshot)
{
    struct record sample;
    return ring_at(ring, at, &sample) && is_whole(&sample) &&
           sample.header.type == PERF_RECORD_SAMPLE && record_read_snapshot(&sample, snapshot);
}

/* If no stack was recorded, the one that is there now does not belong to the sample. */
static void copy_rest(const struct subject *subject, struct snapshot *snapshot)
{
    static const struct stack_place none = {0};
    struct stack_copy *stack = &snapshot->stack;
    stack->old_bytes = stack->bytes;
    stack->is_unreadable = false;
    snapshot_copy_rest(snapshot, subject->tid, subject->stack_areas,
                       stack->bytes ? subject->stack_limit : 0, &none);
}

static struct seen_sleep *find_seen(struct thread_event *window, const struct registers *registers)
{
    for (size_t i = 0; i < SLEEPS_MAX && i < window->sleep_count; i++) {
        const struct watched_call *call = &window->sleeps[i].call;
        if (call->sp == registers_sp(registers) && call->pc == registers_pc(registers))
            return &window->sleeps[i];
    }
    return NULL;
}

/* One instruction may be that of several calls, as in syscall(2). */
static void note_sleep(struct thread_event *window, enum outcome outcome,
                       const struct observation *observation)
{
    const struct registers *registers = &observation->snapshot->registers;
    long number = observation->wait.syscall_number;
    if ((outcome != OUTCOME_OBSERVED && !observation->asleep.was_asleep) || number < 0)
        return;
    struct seen_sleep *seen = find_seen(window, registers);
    if (!seen) {
        seen = &window->sleeps[window->sleep_count++ % SLEEPS_MAX];
        *seen = (struct seen_sleep){{registers_sp(registers), registers_pc(registers), number},
                                    THREAD_SLEEPING};
    }
    if (seen->call.number != number)
        seen->call.number = -1;
    if (outcome == OUTCOME_OBSERVED && !observation->asleep.is_over)
        seen->state = observation->state;
}

/* Replaces what the look found, which was another sleep or none. */
static void replace_look(const struct subject *subject, struct thread_event *window,
                         const struct since_tick *since, struct observation *observation)
{
    const struct seen_sleep *seen = find_seen(window, &observation->snapshot->registers);
    sleep_details_drop(subject, observation);
    observation->evidence = EVIDENCE_ASLEEP;
    observation->asleep = (struct sleep_seen){.is_over = true};
    observation->state = seen ? seen->state : THREAD_SLEEPING;
    observation->wait = (struct wait_seen){.syscall_number = seen ? seen->call.number : -1};
    /* As before the thread returned. */
    observation->now.activity.switches -= since->returns;
    observation->record.returned_ns =
        since->returned_ns ? since->returned_ns : observation->now.at_ns;
}

enum outcome switches_observe_at_tick(struct switches *switches, const struct subject *subject,
                                      struct watch *watch, enum outcome outcome,
                                      struct observation *observation)
{
    struct thread_event *window = find(switches, SWITCHES_IN_WINDOW, subject->thread);
    struct snapshot *snapshot = observation->snapshot;
    struct since_tick since;
    if (!window || !switches->opened_ns || subject->tick_ns < switches->opened_ns ||
        (outcome != OUTCOME_RUNNING && outcome != OUTCOME_OBSERVED))
        return outcome;
    set_open(window, false); /* nothing is overwritten from now on */
    note_sleep(window, outcome, observation);
    enum tick_state state = find_tick(switches->opened_ns, &window->ring, subject->tick_ns,
                                      observation->now.at_ns, &since);
    if (state == TICK_ASLEEP && (outcome == OUTCOME_RUNNING || since.returns) &&
        read_sample(&window->ring, since.sample_at, snapshot)) {
        copy_rest(subject, snapshot);
        replace_look(subject, window, &since, observation);
        watch->is_asleep = false; /* not where it was observed now */
        return OUTCOME_OBSERVED;
    }
    bool is_late = observation->now.at_ns > subject->tick_ns + LATE_NS;
    if (state == TICK_UNKNOWN || state == TICK_ASLEEP || !since.has_moved ||
        (state == TICK_ASLEEP_BEFORE && is_late))
        return outcome;
    observation->asleep.was_asleep = false; /* not at the tick */
    if (outcome == OUTCOME_RUNNING)
        return outcome;
    watch->is_asleep = false;
    return state == TICK_AWAKE ? OUTCOME_ASLEEP : OUTCOME_REFUSED;
}
