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
/* A thread's event that could not be opened is not tried again for this long. */
#define REFUSAL_HOLDS_NS 1000000000u
#define STACK_LIMIT_MIN (2u << 10)
#define RECORD_BYTES 512 /* of a sample, without its stack, rounded up */
/* A CPU is interrupted to set its period, so that is not done after each sample. */
#define SAMPLES_A_PERIOD 4

struct perf_source {
    struct source source;
    struct perf_source_options options;
    enum perf_scope scope;
    struct events events; /* one a CPU, or one a thread */
    struct filter filter;
    bool has_filter, has_next; /* perf_source_set_next: the filter goes on with a program */
    unsigned chain_limit;      /* the most addresses in a kernel chain; 0: samples have none */
    uint64_t periods_set;
    int filter_refusal; /* a negative errno: why samples are not filtered, the last time */
    int refusal; /* a negative errno: why a thread's event could not be opened, the last time */
    uint64_t refused_ns;
    int follow_refusal; /* the same of a process that could not be followed */
};

static struct perf_source *perf_source_of(const struct source *source)
{
    return (struct perf_source *)source;
}

static size_t stack_bytes(const struct perf_source *kernel)
{
    return kernel->events.attr.sample_stack_user;
}

/* The kernel opens no event that asks for longer chains than this setting. */
static unsigned read_chain_limit(void)
{
    long limit = procfs_number("/proc/sys/kernel/perf_event_max_stack", KERNEL_CHAIN_MAX);
    return limit < KERNEL_CHAIN_MAX ? (unsigned)limit : KERNEL_CHAIN_MAX;
}

/* A CPU's event is sampled at intervals of time unless the CPU is idle; a thread's event, at
 * intervals of its running time. */
static struct perf_event_attr attributes_of(const struct perf_source *kernel, size_t stack_bytes)
{
    uint64_t chain_type = kernel->chain_limit ? PERF_SAMPLE_CALLCHAIN : 0;
    return (struct perf_event_attr){
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = kernel->options.period_ns, /* this clock counts nanoseconds */
        .sample_type = RING_SAMPLE_TYPE | chain_type | PERF_SAMPLE_STACK_USER,
        .sample_max_stack = (uint16_t)kernel->chain_limit,
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
static void set_events(struct perf_source *kernel, enum perf_scope scope, size_t stack_bytes)
{
    struct events *events = &kernel->events;
    size_t samples = scope == PERF_SCOPE_THREADS
                         ? THREAD_RING_SAMPLES
                         : kernel->options.held_ns / kernel->options.period_ns + 1;
    kernel->scope = scope;
    events->attr = attributes_of(kernel, stack_bytes);
    size_t record_bytes = stack_bytes + RECORD_BYTES + kernel->chain_limit * sizeof(uint64_t);
    events->ring_bytes = events_ring_bytes(samples * record_bytes);
    events->ring_bytes_min = events_ring_bytes(2 * stack_bytes);
    if (scope == PERF_SCOPE_CPUS && events->ring_bytes > CPU_RING_BYTES_MAX)
        events->ring_bytes = CPU_RING_BYTES_MAX;
}

/* Whether threads of our own may be sampled, as any other's of the same user. */
static int try_thread_scope(struct perf_source *kernel)
{
    set_events(kernel, PERF_SCOPE_THREADS, stack_bytes(kernel));
    int err = events_add(&kernel->events, 0, -1);
    events_drop_all(&kernel->events);
    return err;
}

/* `refusal`: a negative errno; 0: there is a filter. */
static void set_filter(struct perf_source *kernel, int refusal)
{
    bool has_filter = !refusal;
    kernel->filter_refusal = refusal;
    if (kernel->has_filter && !has_filter)
        filter_close(&kernel->filter);
    kernel->has_filter = has_filter;
    kernel->has_next = false;
    kernel->events.filter = has_filter ? &kernel->filter : NULL;
}

static int try_cpu_scope(struct perf_source *kernel)
{
    struct events *events = &kernel->events;
    set_filter(kernel, filter_open(&kernel->filter));
    int err = events_update_cpus(events);
    if (err && kernel->has_filter) {
        events_drop_all(events);
        set_filter(kernel, err);
        err = events_update_cpus(events);
    }
    if (!err && events->count)
        return 0;
    events_drop_all(events);
    return err ? err : -ENODEV;
}

static int begin(struct perf_source *kernel)
{
    int err = try_cpu_scope(kernel);
    return err == -EACCES || err == -EPERM ? try_thread_scope(kernel) : err;
}

enum taken { TAKEN_SAMPLE, TAKEN_OTHER, TAKEN_NOTHING };

/* Reads what follows the time of a sample. */
static bool read_sample(const struct perf_source *kernel, const struct record *record,
                        struct kernel_chain *chain, struct snapshot *snapshot)
{
    size_t at = offsetof(struct sample_head, abi);
    return (!chain || record_read_kernel_chain(record, at, kernel->chain_limit, chain, &at)) &&
           record_read_snapshot_at(record, at, snapshot);
}

/* Takes a sample, unless there is no snapshot for it: then it stays in the ring. */
static enum taken take_sample(struct perf_source *kernel, const struct record *record,
                              struct observation *ret_observation)
{
    static const struct stack_place no_place = {0};
    struct snapshot_pool *snapshots = kernel->options.snapshots;
    struct sample_head head;
    if (!record_read(record, 0, &head, sizeof head) ||
        !events_are_of(&kernel->events, (pid_t)head.process_id))
        return TAKEN_OTHER;
    struct snapshot *snapshot = snapshot_pool_take(snapshots, stack_bytes(kernel), &no_place);
    if (!snapshot)
        return TAKEN_NOTHING;
    struct kernel_chain *chain = kernel->chain_limit ? snapshot_kernel_chain(snapshot) : NULL;
    bool lacks_memory = kernel->chain_limit && !chain;
    if (lacks_memory || !read_sample(kernel, record, chain, snapshot)) {
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

/* The kernel samples at equal intervals. If a program repeats itself as often, or is held up by
 * each sample until it does, all samples would find the same part of it. So now and then the period
 * is another one, from half the mean to one and a half.
 *
 * The interval that is under way begins anew by that (perf_event_period in the kernel's
 * kernel/events/core.c). A third of one is lost, in the mean, so all are shorter. */
static void vary_period(struct perf_source *kernel, struct event *event)
{
    const struct perf_source_options *options = &kernel->options;
    uint64_t mean_ns = options->period_ns * 3 * SAMPLES_A_PERIOD / (3 * SAMPLES_A_PERIOD + 1);
    uint64_t period_ns =
        mean_ns / 2 + random_below((uint32_t)mean_ns, options->seed, kernel->periods_set++);
    ioctl(event->ring.fd, PERF_EVENT_IOC_PERIOD, &period_ns);
    event->samples = 0;
}

static void vary_periods(struct perf_source *kernel)
{
#ifdef FGPROF_WITHOUT_VARIED_PERIODS
    return;
#endif
    for (size_t i = 0; i < kernel->events.count; i++) {
        if (kernel->events.items[i].samples >= SAMPLES_A_PERIOD)
            vary_period(kernel, &kernel->events.items[i]);
    }
}

#define NO_RECORD UINT64_MAX

/* When a record was written. By sample_id_all, all but samples end with the time. */
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
 * not looked at again until all are. */
static struct event *find_oldest(struct perf_source *kernel)
{
    struct event *oldest = NULL;
    struct record record;
    for (size_t i = 0; i < kernel->events.count; i++) {
        struct event *event = &kernel->events.items[i];
        if (!event->next_ns)
            event->next_ns = ring_next(&event->ring, &record) ? time_of(&record) : NO_RECORD;
        if (event->next_ns != NO_RECORD && (!oldest || event->next_ns < oldest->next_ns))
            oldest = event;
    }
    return oldest;
}

static enum taken take_next(struct perf_source *kernel, struct event *event,
                            struct observation *ret_observation)
{
    struct record record;
    enum taken taken = TAKEN_OTHER;
    event->next_ns = 0;
    if (!ring_next(&event->ring, &record))
        return TAKEN_OTHER;
    if (record.header.type == PERF_RECORD_SAMPLE)
        taken = take_sample(kernel, &record, ret_observation);
    else
        events_note(&kernel->events, &record);
    if (taken != TAKEN_NOTHING)
        ring_skip(&event->ring, &record);
    return taken;
}

/* All has been collected, or there are no snapshots for the rest. */
static void rest(struct perf_source *kernel)
{
    for (size_t i = 0; i < kernel->events.count; i++)
        kernel->events.items[i].next_ns = 0;
    events_drop_replaced(&kernel->events);
    vary_periods(kernel);
}

/* In the order of time, so that when snapshots are scarce no CPU is left out, and a thread's
 * samples of several CPUs come as they were taken. */
static bool collect(struct source *source, struct observation *ret_observation,
                    enum outcome *ret_outcome)
{
    struct perf_source *kernel = perf_source_of(source);
    struct event *event;
    while ((event = find_oldest(kernel))) {
        enum taken taken = take_next(kernel, event, ret_observation);
        if (taken == TAKEN_NOTHING)
            break;
        if (taken == TAKEN_SAMPLE) {
            event->samples++;
            *ret_outcome = OUTCOME_OBSERVED;
            return true;
        }
    }
    rest(kernel);
    return false;
}

static bool has_thread(const struct perf_source *kernel, pid_t tid)
{
    for (size_t i = 0; i < kernel->events.count; i++) {
        if (kernel->events.items[i].tid == tid)
            return true;
    }
    return false;
}

/* Returns whether the thread has an event now. */
static bool add_thread(struct perf_source *kernel, pid_t tid)
{
    uint64_t now_ns = monotonic_ns();
    if (kernel->refusal && now_ns - kernel->refused_ns < REFUSAL_HOLDS_NS)
        return false;
    int err = kernel->events.count < THREADS_MAX ? events_add(&kernel->events, tid, -1) : -ENOSPC;
    kernel->refusal = 0;
    /* It has ended, or will in a moment: its event can't be mapped then. */
    if (!err || err == -ESRCH || err == -ENODEV)
        return !err;
    kernel->refusal = err;
    kernel->refused_ns = now_ns;
    return false;
}

bool perf_source_covers(struct source *source, pid_t process_id, pid_t tid, size_t stack_limit,
                        const struct stack_place *other)
{
    struct perf_source *kernel = perf_source_of(source);
    if (stack_limit > PERF_STACK_LIMIT_MAX || other->address ||
        !events_are_of(&kernel->events, process_id))
        return false;
    return kernel->scope == PERF_SCOPE_CPUS || has_thread(kernel, tid) || add_thread(kernel, tid);
}

enum perf_scope perf_source_scope(const struct source *source)
{
    return perf_source_of(source)->scope;
}

/* Without a filter samples of all processes are copied, but none is missing. */
int perf_source_follow(struct source *source, pid_t process_id)
{
    struct perf_source *kernel = perf_source_of(source);
    int err = events_follow(&kernel->events, process_id);
    if (err && kernel->has_filter) {
        set_filter(kernel, err);
        events_reopen(&kernel->events);
        err = events_follow(&kernel->events, process_id);
    }
    if (err)
        kernel->follow_refusal = err;
    return err;
}

void perf_source_unfollow(struct source *source, pid_t process_id)
{
    events_unfollow(&perf_source_of(source)->events, process_id);
}

void perf_source_forget(struct source *source, pid_t tid)
{
    struct events *events = &perf_source_of(source)->events;
    for (size_t i = events->count; i-- > 0;) {
        if (events->items[i].tid == tid)
            events_drop(events, i);
    }
}

uint64_t perf_source_exec_ns(const struct source *source, pid_t process_id)
{
    return events_exec_ns(&perf_source_of(source)->events, process_id);
}

/* Within what the kernel takes: a multiple of 8. */
static size_t stack_bytes_for(size_t stack_limit)
{
    size_t bytes = stack_limit < STACK_LIMIT_MIN ? STACK_LIMIT_MIN : stack_limit;
    return (bytes < PERF_STACK_LIMIT_MAX ? bytes : PERF_STACK_LIMIT_MAX) & ~(size_t)7;
}

/* Events can't be changed, so all are replaced. If that fails for one, it is tried again by the
 * next perf_source_adjust or perf_source_covers. */
int perf_source_adjust(struct source *source, size_t stack_limit)
{
    struct perf_source *kernel = perf_source_of(source);
    size_t wanted_bytes = stack_bytes_for(stack_limit);
    if (wanted_bytes != stack_bytes(kernel)) {
        set_events(kernel, kernel->scope, wanted_bytes);
        events_reopen(&kernel->events);
    }
    return kernel->scope == PERF_SCOPE_CPUS ? events_update_cpus_sometimes(&kernel->events) : 0;
}

int perf_source_refusal(const struct source *source, pid_t process_id, pid_t tid)
{
    const struct perf_source *kernel = perf_source_of(source);
    if (!events_are_of(&kernel->events, process_id))
        return kernel->follow_refusal;
    bool needs_none = kernel->scope == PERF_SCOPE_CPUS || has_thread(kernel, tid);
    return needs_none ? 0 : kernel->refusal;
}

int perf_source_filter_refusal(const struct source *source)
{
    const struct perf_source *kernel = perf_source_of(source);
    return kernel->scope == PERF_SCOPE_CPUS ? kernel->filter_refusal : 0;
}

int perf_source_set_next(struct source *source, int program_fd)
{
    struct perf_source *kernel = perf_source_of(source);
    int err = kernel->has_filter ? filter_set_next(&kernel->filter, program_fd) : -ENOTSUP;
    kernel->has_next = !err && program_fd >= 0;
    return err;
}

bool perf_source_has_next(const struct source *source)
{
    return perf_source_of(source)->has_next;
}

uint64_t perf_source_lost(const struct source *source)
{
    return perf_source_of(source)->events.lost;
}

static void free_kernel(struct source *source)
{
    if (!source)
        return;
    struct perf_source *kernel = perf_source_of(source);
    events_free(&kernel->events);
    set_filter(kernel, -ENODEV);
    free(kernel);
}

int perf_source_new(const struct perf_source_options *options, struct source **ret_source)
{
    struct perf_source *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return -ENOMEM;
    kernel->source = (struct source){.collect = collect, .free = free_kernel};
    kernel->options = *options;
    kernel->chain_limit = options->has_kernel_chains ? read_chain_limit() : 0;
    set_events(kernel, PERF_SCOPE_CPUS, stack_bytes_for(options->stack_limit));
    int err = begin(kernel);
    if (err) {
        free_kernel(&kernel->source);
        return err;
    }
    *ret_source = &kernel->source;
    return 0;
}
