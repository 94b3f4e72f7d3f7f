#include "observe/switches.h"
#include "base/clock.h"
#include "observe/ring.h"
#include "observe/sleep_details.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#define ARMED_MAX 64
/* Room for some twenty pairs of records; the newest one counts. */
#define ARMED_RING_BYTES 4096u
/* The maximum time from when we take a thread's CPU until we read the clock. */
#define WAKING_NS 100000

/* Opening a window interrupts the CPU of each of these threads. */
#define WINDOWS_MAX 16
#define WINDOW_STACK_BYTES 4096u
/* Room for seven departures: more than there are between a tick and a look. */
#define WINDOW_RING_BYTES 32768u
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

/* Where a look has found the thread asleep, and how: records do not say that. */
struct seen_sleep {
    struct watched_call call; /* number -1: several calls sleep there */
    enum thread_state state;
};

struct window {
    uint32_t thread;
    bool is_open;
    struct ring ring;
    struct seen_sleep sleeps[SLEEPS_MAX];
    size_t sleep_count; /* so far; the last SLEEPS_MAX are kept */
};

/* Why an event could last not be had, and when. */
struct refusal {
    int err; /* a negative errno; 0: it could be had */
    uint64_t at_ns;
};

struct switches {
    struct armed armed[ARMED_MAX];
    size_t armed_count;
    struct window windows[WINDOWS_MAX];
    size_t window_count;
    uint64_t opened_ns;         /* the windows; 0: they are closed */
    int keeper_fd_plus_1;       /* 0: none */
    struct refusal refusals[2]; /* without and with a window, which takes more memory */
};

static struct armed *find_armed(const struct switches *switches, uint32_t thread)
{
    for (size_t i = 0; switches && i < switches->armed_count; i++) {
        if (switches->armed[i].thread == thread)
            return (struct armed *)&switches->armed[i];
    }
    return NULL;
}

static struct window *find_window(struct switches *switches, uint32_t thread)
{
    for (size_t i = 0; switches && i < switches->window_count; i++) {
        if (switches->windows[i].thread == thread)
            return &switches->windows[i];
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

/* `stack_bytes`: how much of the stack is recorded. 0: none; the event is then always on. Otherwise
 * it has a window, and starts off. */
static int open_event(struct switches *switches, pid_t tid, uint32_t stack_bytes, size_t ring_bytes,
                      struct ring *ret_ring)
{
    const struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
        .sample_period = 1,
        .sample_type = RING_SAMPLE_TYPE | (stack_bytes ? PERF_SAMPLE_STACK_USER : 0),
        .sample_regs_user = registers_sample_mask,
        .sample_stack_user = stack_bytes,
        .context_switch = 1,
        .write_backward = 1,
        .disabled = stack_bytes != 0,
    };
    struct refusal *last = &switches->refusals[stack_bytes != 0];
    if (last->err && monotonic_ns() < last->at_ns + REFUSAL_HOLDS_NS)
        return last->err;
    keep_events(switches, attr);
    int err = ring_open(&attr, tid, -1, ring_bytes, RING_OVERWRITTEN, ret_ring);
    bool has_ended = err == -ESRCH || err == -ENODEV;
    *last = (struct refusal){has_ended ? 0 : err, monotonic_ns()};
    return err;
}

int switches_arm(struct switches *switches, uint32_t thread, pid_t tid)
{
    struct armed armed = {.thread = thread};
    if (!switches || find_armed(switches, thread))
        return 0;
    if (switches->armed_count == ARMED_MAX)
        return -ENOSPC;
    int err = open_event(switches, tid, 0, ARMED_RING_BYTES, &armed.ring);
    if (!err)
        switches->armed[switches->armed_count++] = armed;
    return err;
}

bool switches_is_armed(const struct switches *switches, uint32_t thread)
{
    return find_armed(switches, thread);
}

void switches_disarm(struct switches *switches, uint32_t thread)
{
    struct armed *armed = find_armed(switches, thread);
    if (!armed)
        return;
    ring_close(&armed->ring);
    *armed = switches->armed[--switches->armed_count];
}

int switches_add_window(struct switches *switches, uint32_t thread, pid_t tid)
{
    struct window window = {.thread = thread};
    if (!switches || find_window(switches, thread))
        return 0;
    if (switches->window_count == WINDOWS_MAX)
        return -ENOSPC;
    int err = open_event(switches, tid, WINDOW_STACK_BYTES, WINDOW_RING_BYTES, &window.ring);
    if (!err)
        switches->windows[switches->window_count++] = window;
    return err;
}

void switches_drop_window(struct switches *switches, uint32_t thread)
{
    struct window *window = find_window(switches, thread);
    if (!window)
        return;
    ring_close(&window->ring);
    *window = switches->windows[--switches->window_count];
}

static void set_open(struct window *window, bool is_open)
{
    if (window->is_open != is_open)
        ioctl(window->ring.fd, is_open ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
    window->is_open = is_open;
}

uint64_t switches_open_windows(struct switches *switches, uint64_t begin_ns)
{
    if (!switches || !switches->window_count || switches->opened_ns)
        return UINT64_MAX;
    uint64_t now_ns = monotonic_ns();
    if (now_ns < begin_ns)
        return begin_ns;
    switches->opened_ns = now_ns;
    for (size_t i = 0; i < switches->window_count; i++)
        set_open(&switches->windows[i], true);
    return UINT64_MAX;
}

void switches_close_windows(struct switches *switches)
{
    for (size_t i = 0; switches && i < switches->window_count; i++)
        set_open(&switches->windows[i], false);
    if (switches)
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
    for (size_t i = 0; i < switches->armed_count; i++)
        ring_close(&switches->armed[i].ring);
    for (size_t i = 0; i < switches->window_count; i++)
        ring_close(&switches->windows[i].ring);
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
    const struct armed *armed = find_armed(switches, subject->thread);
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
    const struct armed *armed = find_armed(switches, thread);
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

static struct seen_sleep *find_seen(struct window *window, const struct registers *registers)
{
    for (size_t i = 0; i < SLEEPS_MAX && i < window->sleep_count; i++) {
        const struct watched_call *call = &window->sleeps[i].call;
        if (call->sp == registers_sp(registers) && call->pc == registers_pc(registers))
            return &window->sleeps[i];
    }
    return NULL;
}

/* One instruction may be that of several calls, as in syscall(2). */
static void note_sleep(struct window *window, enum outcome outcome,
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
static void replace_look(const struct subject *subject, struct window *window,
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
    struct window *window = find_window(switches, subject->thread);
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
