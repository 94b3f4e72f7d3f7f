#include "observe/switch_windows.h"
#include "base/clock.h"
#include "observe/ring.h"
#include "observe/sleep_details.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>

/* Opening a window interrupts the CPU of each thread. */
#define THREADS_MAX 16
#define STACK_BYTES 4096u
/* Room for seven departures: more than there are between a tick and a look. */
#define RING_BYTES 32768u
/* More records than the ring holds. */
#define RECORDS_MAX 2048

#define CALLS_MAX 8

struct window {
    uint32_t thread;
    bool is_open;
    struct ring ring;
    /* Where looks have found the thread lately, and in which calls: records do not say that. */
    struct watched_call calls[CALLS_MAX];
    size_t call_count; /* so far; the last CALLS_MAX are kept */
};

struct switch_windows {
    struct window items[THREADS_MAX];
    size_t count;
    uint64_t opened_ns; /* 0: they are closed */
};

/* A sleep that was in force at a tick. */
struct recorded_sleep {
    uint64_t sample_at;   /* in the ring */
    uint64_t returned_ns; /* when the thread was first back on a CPU; 0: it was not */
    uint64_t returns;     /* how often it has got a CPU between the tick and the look */
};

static struct window *find(struct switch_windows *windows, uint32_t thread)
{
    for (size_t i = 0; windows && i < windows->count; i++) {
        if (windows->items[i].thread == thread)
            return &windows->items[i];
    }
    return NULL;
}

int switch_windows_add(struct switch_windows *windows, uint32_t thread, pid_t tid)
{
    const struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
        .sample_period = 1,
        .sample_type = RING_SAMPLE_TYPE | PERF_SAMPLE_STACK_USER,
        .sample_regs_user = registers_sample_mask,
        .sample_stack_user = STACK_BYTES,
        .context_switch = 1,
        .write_backward = 1,
        .disabled = 1,
    };
    struct window window = {.thread = thread};
    if (!windows || find(windows, thread))
        return 0;
    if (windows->count == THREADS_MAX)
        return -ENOSPC;
    int err = ring_open(&attr, tid, -1, RING_BYTES, RING_OVERWRITTEN, &window.ring);
    if (!err)
        windows->items[windows->count++] = window;
    return err;
}

void switch_windows_drop(struct switch_windows *windows, uint32_t thread)
{
    struct window *window = find(windows, thread);
    if (!window)
        return;
    ring_close(&window->ring);
    *window = windows->items[--windows->count];
}

static void set_open(struct window *window, bool is_open)
{
    if (window->is_open != is_open)
        ioctl(window->ring.fd, is_open ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
    window->is_open = is_open;
}

uint64_t switch_windows_open(struct switch_windows *windows, uint64_t begin_ns)
{
    if (!windows || !windows->count || windows->opened_ns)
        return UINT64_MAX;
    uint64_t now_ns = monotonic_ns();
    if (now_ns < begin_ns)
        return begin_ns;
    windows->opened_ns = now_ns;
    for (size_t i = 0; i < windows->count; i++)
        set_open(&windows->items[i], true);
    return UINT64_MAX;
}

void switch_windows_close(struct switch_windows *windows)
{
    for (size_t i = 0; windows && i < windows->count; i++)
        set_open(&windows->items[i], false);
    if (windows)
        windows->opened_ns = 0;
}

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

/* Reads the records, newest first. When the thread leaves a CPU, the kernel writes a sample and
 * then a PERF_RECORD_SWITCH with PERF_RECORD_MISC_SWITCH_OUT (perf_event_task_sched_out in its
 * include/linux/perf_event.h); when it comes back, one without that flag. Returns false if the
 * thread did not sleep at the tick, or if that is not known. */
static bool find_sleep(const struct switch_windows *windows, const struct ring *ring,
                       uint64_t tick_ns, uint64_t look_ns, struct recorded_sleep *ret_sleep)
{
    struct recorded_sleep sleep = {.sample_at = ring_head(ring)};
    struct record record;
    for (unsigned i = 0;
         i < RECORDS_MAX && ring_at(ring, sleep.sample_at, &record) && is_whole(&record); i++) {
        sleep.sample_at += record.header.size;
        if (record.header.type == PERF_RECORD_SAMPLE)
            continue;
        uint64_t at_ns = switched_ns(&record);
        bool has_left = record.header.misc & PERF_RECORD_MISC_SWITCH_OUT;
        if (at_ns < windows->opened_ns)
            return false;
        if (at_ns <= tick_ns) {
            *ret_sleep = sleep;
            return has_left && !(record.header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
        }
        sleep.returned_ns = has_left ? sleep.returned_ns : at_ns;
        sleep.returns += !has_left && at_ns <= look_ns;
    }
    return false;
}

/* Returns false, with the snapshot as it was, if the ring does not have the sample any more. */
static bool read_sample(const struct ring *ring, uint64_t at, struct snapshot *snapshot)
{
    struct record sample;
    return ring_at(ring, at, &sample) && is_whole(&sample) &&
           sample.header.type == PERF_RECORD_SAMPLE && record_read_snapshot(&sample, snapshot);
}

/* If no stack was recorded, what is there now is another one. */
static void copy_rest(const struct subject *subject, struct snapshot *snapshot)
{
    static const struct stack_place none = {0};
    struct stack_copy *stack = &snapshot->stack;
    stack->old_bytes = stack->bytes;
    stack->is_unreadable = stack->bytes == 0;
    snapshot_copy_rest(snapshot, subject->tid, subject->stack_areas,
                       stack->bytes ? subject->stack_limit : 0, &none);
}

static const struct watched_call *find_call(const struct window *window,
                                            const struct registers *registers)
{
    for (size_t i = 0; i < CALLS_MAX && i < window->call_count; i++) {
        const struct watched_call *call = &window->calls[i];
        if (call->sp == registers_sp(registers) && call->pc == registers_pc(registers))
            return call;
    }
    return NULL;
}

static void note_call(struct window *window, enum outcome outcome,
                      const struct observation *observation)
{
    const struct registers *registers = &observation->snapshot->registers;
    bool is_found = outcome == OUTCOME_OBSERVED || observation->asleep.was_asleep;
    if (!is_found || observation->wait.syscall_number < 0 || find_call(window, registers))
        return;
    window->calls[window->call_count++ % CALLS_MAX] = (struct watched_call){
        registers_sp(registers), registers_pc(registers), observation->wait.syscall_number};
}

/* What the look has found of another sleep, or of none, does not count. */
static void replace_look(const struct subject *subject, const struct window *window,
                         const struct recorded_sleep *sleep, struct observation *observation)
{
    const struct watched_call *call = find_call(window, &observation->snapshot->registers);
    sleep_details_drop(subject, observation);
    observation->evidence = EVIDENCE_ASLEEP;
    observation->asleep = (struct sleep_seen){.is_over = true};
    observation->state = THREAD_SLEEPING;
    observation->wait = (struct wait_seen){.syscall_number = -1};
    if (call)
        observation->wait.syscall_number = call->number;
    /* As before the thread returned. */
    observation->now.activity.switches -= sleep->returns;
    observation->record.returned_ns =
        sleep->returned_ns ? sleep->returned_ns : observation->now.at_ns;
}

bool switch_windows_observe(struct switch_windows *windows, const struct subject *subject,
                            struct watch *watch, enum outcome outcome,
                            struct observation *observation)
{
    struct window *window = find(windows, subject->thread);
    struct snapshot *snapshot = observation->snapshot;
    struct recorded_sleep sleep;
    if (!window || !windows->opened_ns ||
        (outcome != OUTCOME_RUNNING && outcome != OUTCOME_OBSERVED))
        return false;
    set_open(window, false); /* nothing is overwritten from now on */
    note_call(window, outcome, observation);
    if (!find_sleep(windows, &window->ring, subject->tick_ns, observation->now.at_ns, &sleep) ||
        (outcome == OUTCOME_OBSERVED && !sleep.returns) || /* that is the same sleep */
        !read_sample(&window->ring, sleep.sample_at, snapshot))
        return false;
    copy_rest(subject, snapshot);
    replace_look(subject, window, &sleep, observation);
    watch->is_asleep = false; /* not where it was observed now */
    return true;
}

void switch_windows_free(struct switch_windows *windows)
{
    for (size_t i = 0; windows && i < windows->count; i++)
        ring_close(&windows->items[i].ring);
    free(windows);
}

int switch_windows_new(struct switch_windows **ret_windows)
{
    *ret_windows = calloc(1, sizeof **ret_windows);
    return *ret_windows ? 0 : -ENOMEM;
}
