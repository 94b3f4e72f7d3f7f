#include "observe/perf_source.h"
#include "base/clock.h"
#include "base/random.h"
#include "observe/events.h"
#include "proc/procfs.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#define CPU_RING_BYTES_MAX (4u << 20)
#define THREAD_RING_SAMPLES 2
#define THREADS_MAX 256
/* If a thread's event could not be opened, none is tried for this long. */
#define REFUSAL_HOLDS_NS 1000000000u
#define STACK_LIMIT_MIN (2u << 10)
#define RECORD_BYTES 512 /* of a sample, without its stack, rounded up */
/* Setting a period interrupts the CPU, so it is not done after each sample. */
#define SAMPLES_A_PERIOD 4

struct perf_source {
    struct perf_source_options options;
    enum perf_scope scope;
    struct events events; /* one a CPU, or one a thread */
    struct filter filter;
    bool has_filter, has_next; /* perf_source_set_next: the filter continues with a program */
    unsigned chain_limit;      /* the most addresses in a kernel chain; 0: samples have none */
    uint64_t periods_set;
    int filter_refusal; /* why samples were last not filtered: a negative errno */
    int refusal;        /* why a thread's event could last not be opened: a negative errno */
    uint64_t refused_ns;
    int follow_refusal; /* the same for a process that could not be followed */
};

static size_t stack_bytes(const struct perf_source *source)
{
    return source->events.attr.sample_stack_user;
}

/* The kernel refuses events that request longer chains than this setting. */
static unsigned read_chain_limit(void)
{
    long limit = procfs_number("/proc/sys/kernel/perf_event_max_stack", KERNEL_CHAIN_MAX);
    return limit < KERNEL_CHAIN_MAX ? (unsigned)limit : KERNEL_CHAIN_MAX;
}

/* A CPU's event samples at intervals of time, unless the CPU is idle; a thread's event, at
 * intervals of the thread's running time. */
static struct perf_event_attr attributes_of(const struct perf_source *source, size_t stack_bytes)
{
    uint64_t chain_type = source->chain_limit ? PERF_SAMPLE_CALLCHAIN : 0;
    return (struct perf_event_attr){
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = source->options.period_ns, /* this clock counts nanoseconds */
        .sample_type = RING_SAMPLE_TYPE | chain_type | PERF_SAMPLE_STACK_USER,
        .sample_max_stack = (uint16_t)source->chain_limit,
        .exclude_callchain_user = 1,
        .sample_regs_user = registers_sample_mask,
        .sample_stack_user = (uint32_t)stack_bytes,
        .disabled = 1,
        .exclude_idle = 1,
        .comm = 1,
        .comm_exec = 1,
    };
}

/* Sets how events are opened from now on. */
static void set_events(struct perf_source *source, enum perf_scope scope, size_t stack_bytes)
{
    struct events *events = &source->events;
    size_t samples = scope == PERF_SCOPE_THREADS
                         ? THREAD_RING_SAMPLES
                         : source->options.held_ns / source->options.period_ns + 1;
    source->scope = scope;
    events->attr = attributes_of(source, stack_bytes);
    size_t record_bytes = stack_bytes + RECORD_BYTES + source->chain_limit * sizeof(uint64_t);
    events->ring_bytes = events_ring_bytes(samples * record_bytes);
    events->ring_bytes_min = events_ring_bytes(2 * stack_bytes);
    if (scope == PERF_SCOPE_CPUS && events->ring_bytes > CPU_RING_BYTES_MAX)
        events->ring_bytes = CPU_RING_BYTES_MAX;
}

/* Tries to sample a thread of our own, which needs the same permission as any other thread of the
 * same user. */
static int try_thread_scope(struct perf_source *source)
{
    set_events(source, PERF_SCOPE_THREADS, stack_bytes(source));
    int err = events_add(&source->events, 0, -1);
    events_drop_all(&source->events);
    return err;
}

/* `refusal`: a negative errno; 0: there is a filter. */
static void set_filter(struct perf_source *source, int refusal)
{
    bool has_filter = !refusal;
    source->filter_refusal = refusal;
    if (source->has_filter && !has_filter)
        filter_close(&source->filter);
    source->has_filter = has_filter;
    source->has_next = false;
    source->events.filter = has_filter ? &source->filter : NULL;
}

static int try_cpu_scope(struct perf_source *source)
{
    struct events *events = &source->events;
    set_filter(source, filter_open(&source->filter));
    int err = events_update_cpus(events);
    if (err && source->has_filter) {
        events_drop_all(events);
        set_filter(source, err);
        err = events_update_cpus(events);
    }
    if (!err && events->count)
        return 0;
    events_drop_all(events);
    return err ? err : -ENODEV;
}

static int begin(struct perf_source *source)
{
    int err = try_cpu_scope(source);
    return err == -EACCES || err == -EPERM ? try_thread_scope(source) : err;
}

enum taken { TAKEN_SAMPLE, TAKEN_OTHER, TAKEN_NOTHING };

/* Reads what follows the time of a sample. */
static bool read_sample(const struct perf_source *source, const struct record *record,
                        struct kernel_chain *chain, struct snapshot *snapshot)
{
    size_t at = offsetof(struct sample_head, abi);
    return (!chain || record_read_kernel_chain(record, at, source->chain_limit, chain, &at)) &&
           record_read_snapshot_at(record, at, snapshot);
}

/* Takes a sample, unless there is no snapshot for it: then it stays in the ring. */
static enum taken take_sample(struct perf_source *source, const struct record *record,
                              struct observation *ret_observation)
{
    static const struct stack_place no_place = {0};
    struct snapshot_pool *snapshots = source->options.snapshots;
    struct sample_head head;
    if (!record_read(record, 0, &head, sizeof head) ||
        !events_are_of(&source->events, (pid_t)head.process_id))
        return TAKEN_OTHER;
    struct snapshot *snapshot = snapshot_pool_take(snapshots, stack_bytes(source), &no_place);
    if (!snapshot)
        return TAKEN_NOTHING;
    struct kernel_chain *chain = source->chain_limit ? snapshot_kernel_chain(snapshot) : NULL;
    bool lacks_memory = source->chain_limit && !chain;
    if (lacks_memory || !read_sample(source, record, chain, snapshot)) {
        snapshot_pool_give(snapshots, snapshot, false);
        return lacks_memory ? TAKEN_NOTHING : TAKEN_OTHER;
    }
    *ret_observation = (struct observation){
        .process_id = (pid_t)head.process_id,
        .tid = (pid_t)head.tid,
        .sampled.at_ns = ring_time(record->ring, head.at_ns),
        .evidence = EVIDENCE_SAMPLED,
        .state = THREAD_RUNNING,
        .wait.syscall_number = -1,
        .snapshot = snapshot,
    };
    return TAKEN_SAMPLE;
}

/* The kernel samples at equal intervals. If a program repeats itself at that rate, or is delayed by
 * each sample until it does, all samples would find the same part of it. So now and then the period
 * is changed, to between half and one and a half of the mean.
 *
 * That restarts the current interval (perf_event_period in the kernel's kernel/events/core.c), of
 * which a third is lost on average, so all intervals are set shorter. */
static void vary_period(struct perf_source *source, struct event *event)
{
    const struct perf_source_options *options = &source->options;
    uint64_t mean_ns = options->period_ns * 3 * SAMPLES_A_PERIOD / (3 * SAMPLES_A_PERIOD + 1);
    uint64_t period_ns =
        mean_ns / 2 + random_below((uint32_t)mean_ns, options->seed, source->periods_set++);
    ioctl(event->ring.fd, PERF_EVENT_IOC_PERIOD, &period_ns);
    event->samples = 0;
}

static void vary_periods(struct perf_source *source)
{
#ifdef FGPROF_WITHOUT_VARIED_PERIODS
    return;
#endif
    for (size_t i = 0; i < source->events.count; i++) {
        if (source->events.items[i].samples >= SAMPLES_A_PERIOD)
            vary_period(source, &source->events.items[i]);
    }
}

#define NO_RECORD UINT64_MAX

/* When a record was written. With sample_id_all, all records except samples end with the time. */
static uint64_t time_of(const struct record *record)
{
    size_t body_bytes = record->header.size - sizeof record->header;
    size_t at = record->header.type == PERF_RECORD_SAMPLE ? offsetof(struct sample_head, at_ns)
                                                          : body_bytes - sizeof(uint64_t);
    uint64_t at_ns = 0;
    record_read(record, at, &at_ns, sizeof at_ns);
    return at_ns;
}

/* The event whose ring has the oldest record; NULL: no ring has any. A ring that was found empty is
 * not checked again until all are empty. */
static struct event *find_oldest(struct perf_source *source)
{
    struct event *oldest = NULL;
    struct record record;
    for (size_t i = 0; i < source->events.count; i++) {
        struct event *event = &source->events.items[i];
        if (!event->next_ns)
            event->next_ns = ring_next(&event->ring, &record) ? time_of(&record) : NO_RECORD;
        if (event->next_ns != NO_RECORD && (!oldest || event->next_ns < oldest->next_ns))
            oldest = event;
    }
    return oldest;
}

static enum taken take_next(struct perf_source *source, struct event *event,
                            struct observation *ret_observation)
{
    struct record record;
    enum taken taken = TAKEN_OTHER;
    event->next_ns = 0;
    if (!ring_next(&event->ring, &record))
        return TAKEN_OTHER;
    if (record.header.type == PERF_RECORD_SAMPLE)
        taken = take_sample(source, &record, ret_observation);
    else
        events_note(&source->events, &record);
    if (taken != TAKEN_NOTHING)
        ring_skip(&event->ring, &record);
    return taken;
}

/* Everything was collected, or there are no snapshots for the rest. */
static void rest(struct perf_source *source)
{
    for (size_t i = 0; i < source->events.count; i++)
        source->events.items[i].next_ns = 0;
    events_drop_replaced(&source->events);
    vary_periods(source);
}

/* Collects in time order, so that no CPU is left out when snapshots are scarce, and a thread's
 * samples from several CPUs come in the order in which they were taken. */
bool perf_source_collect(struct perf_source *source, struct observation *ret_observation)
{
    struct event *event;
    while ((event = find_oldest(source))) {
        enum taken taken = take_next(source, event, ret_observation);
        if (taken == TAKEN_NOTHING)
            break;
        if (taken == TAKEN_SAMPLE) {
            event->samples++;
            return true;
        }
    }
    rest(source);
    return false;
}

static bool has_thread(const struct perf_source *source, pid_t tid)
{
    for (size_t i = 0; i < source->events.count; i++) {
        if (source->events.items[i].tid == tid)
            return true;
    }
    return false;
}

/* Returns whether the thread has an event now. */
static bool add_thread(struct perf_source *source, pid_t tid)
{
    uint64_t now_ns = monotonic_ns();
    if (source->refusal && now_ns - source->refused_ns < REFUSAL_HOLDS_NS)
        return false;
    int err = source->events.count < THREADS_MAX ? events_add(&source->events, tid, -1) : -ENOSPC;
    source->refusal = 0;
    /* These errors mean that the thread has exited, or is exiting: its event can't be mapped. */
    if (!err || err == -ESRCH || err == -ENODEV)
        return !err;
    source->refusal = err;
    source->refused_ns = now_ns;
    return false;
}

bool perf_source_covers(struct perf_source *source, pid_t process_id, pid_t tid, size_t stack_limit,
                        const struct stack_place *other)
{
    if (stack_limit > PERF_STACK_LIMIT_MAX || other->address ||
        !events_are_of(&source->events, process_id))
        return false;
    return source->scope == PERF_SCOPE_CPUS || has_thread(source, tid) || add_thread(source, tid);
}

enum perf_scope perf_source_scope(const struct perf_source *source)
{
    return source->scope;
}

/* Without a filter, samples of all processes are copied, but none are missing. */
int perf_source_follow(struct perf_source *source, pid_t process_id)
{
    int err = events_follow(&source->events, process_id);
    if (err && source->has_filter) {
        set_filter(source, err);
        events_reopen(&source->events);
        err = events_follow(&source->events, process_id);
    }
    if (err)
        source->follow_refusal = err;
    return err;
}

void perf_source_unfollow(struct perf_source *source, pid_t process_id)
{
    events_unfollow(&source->events, process_id);
}

void perf_source_forget(struct perf_source *source, pid_t tid)
{
    struct events *events = &source->events;
    for (size_t i = events->count; i-- > 0;) {
        if (events->items[i].tid == tid)
            events_drop(events, i);
    }
}

uint64_t perf_source_exec_ns(const struct perf_source *source, pid_t process_id)
{
    return events_exec_ns(&source->events, process_id);
}

/* A size that the kernel accepts: a multiple of 8. */
static size_t stack_bytes_for(size_t stack_limit)
{
    size_t bytes = stack_limit < STACK_LIMIT_MIN ? STACK_LIMIT_MIN : stack_limit;
    return (bytes < PERF_STACK_LIMIT_MAX ? bytes : PERF_STACK_LIMIT_MAX) & ~(size_t)7;
}

/* Events can't be changed, so all are replaced. If that fails for an event, the next
 * perf_source_adjust or perf_source_covers tries again. */
int perf_source_adjust(struct perf_source *source, size_t stack_limit)
{
    size_t wanted_bytes = stack_bytes_for(stack_limit);
    if (wanted_bytes != stack_bytes(source)) {
        set_events(source, source->scope, wanted_bytes);
        events_reopen(&source->events);
    }
    return source->scope == PERF_SCOPE_CPUS ? events_update_cpus_sometimes(&source->events) : 0;
}

int perf_source_refusal(const struct perf_source *source, pid_t process_id, pid_t tid)
{
    if (!events_are_of(&source->events, process_id))
        return source->follow_refusal;
    bool needs_none = source->scope == PERF_SCOPE_CPUS || has_thread(source, tid);
    return needs_none ? 0 : source->refusal;
}

int perf_source_filter_refusal(const struct perf_source *source)
{
    return source->scope == PERF_SCOPE_CPUS ? source->filter_refusal : 0;
}

int perf_source_set_next(struct perf_source *source, int program_fd)
{
    int err = source->has_filter ? filter_set_next(&source->filter, program_fd) : -ENOTSUP;
    source->has_next = !err && program_fd >= 0;
    return err;
}

bool perf_source_has_next(const struct perf_source *source)
{
    return source->has_next;
}

uint64_t perf_source_lost(const struct perf_source *source)
{
    return source->events.lost;
}

void perf_source_free(struct perf_source *source)
{
    if (!source)
        return;
    events_free(&source->events);
    set_filter(source, -ENODEV);
    free(source);
}

int perf_source_new(const struct perf_source_options *options, struct perf_source **ret_source)
{
    struct perf_source *source = calloc(1, sizeof *source);
    if (!source)
        return -ENOMEM;
    source->options = *options;
    source->chain_limit = options->has_kernel_chains ? read_chain_limit() : 0;
    set_events(source, PERF_SCOPE_CPUS, stack_bytes_for(options->stack_limit));
    int err = begin(source);
    if (err) {
        perf_source_free(source);
        return err;
    }
    *ret_source = source;
    return 0;
}
