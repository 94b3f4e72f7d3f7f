#include "observe/kernel.h"
#include "base/array.h"
#include "base/clock.h"
#include "observe/filter.h"
#include "observe/ring.h"
#include "proc/cpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define CPU_RING_BYTES_MIN (128u << 10)
#define CPU_RING_BYTES_MAX (4u << 20)
#define CPU_RINGS_BYTES_MAX (64u << 20) /* of all CPUs together, unless there are very many */
#define THREAD_RING_SAMPLES 2
#define THREADS_MAX 256
/* A thread's event that could not be opened is not tried again for this long. */
#define REFUSAL_HOLDS_NS 1000000000u
#define STACK_LIMIT_MIN (2u << 10)
#define RECORD_BYTES 512 /* of a sample, without its stack, rounded up */
#define CPUS_READ_EACH_NS 1000000000u
/* So many CPUs' events are checked each time: reading one interrupts its CPU. */
#define CHECKS_EACH 8
/* An event that has missed more than this part of the time has ended. */
#define MISSED_PART 10

/* An event with its ring: one CPU's, or one thread's. */
struct sampling {
    struct ring ring;
    int cpu;                         /* -1: a thread's */
    pid_t tid;                       /* -1: a CPU's */
    uint64_t checked_ns, counted_ns; /* a CPU's: what it had counted when it was last checked */
};

struct followed {
    pid_t process_id;
    uint64_t exec_ns;
};

struct kernel_source {
    struct source source;
    struct kernel_options options;
    enum kernel_scope scope;
    size_t stack_bytes; /* that a sample holds */
    struct filter filter;
    bool has_filter;
    struct sampling *samplings;
    size_t count, capacity;
    size_t next; /* the ring to collect from next */
    struct cpus cpus;
    uint64_t cpus_read_ns;
    size_t next_check; /* the event to check next */
    struct followed *followed;
    size_t followed_count, followed_capacity;
    uint64_t lost;
    int refusal; /* a negative errno: why a thread's event could not be opened, the last time */
    uint64_t refused_ns;
};

static struct kernel_source *kernel_of(const struct source *source)
{
    return (struct kernel_source *)source;
}

static struct followed *find_followed(const struct kernel_source *kernel, pid_t process_id)
{
    for (size_t i = 0; i < kernel->followed_count; i++) {
        if (kernel->followed[i].process_id == process_id)
            return &kernel->followed[i];
    }
    return NULL;
}

/* A CPU's event is sampled at equal intervals unless the CPU is idle; a thread's event, at equal
 * intervals of its running time. */
static struct perf_event_attr attributes_of(const struct kernel_source *kernel)
{
    return (struct perf_event_attr){
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = kernel->options.period_ns, /* this clock counts nanoseconds */
        .sample_type = RING_SAMPLE_TYPE | PERF_SAMPLE_STACK_USER,
        .sample_regs_user = registers_sample_mask,
        .sample_stack_user = (uint32_t)kernel->stack_bytes,
        .disabled = 1,
        .exclude_idle = 1,
        .comm = 1,
        .comm_exec = 1,
    };
}

static size_t power_of_two_from(size_t bytes)
{
    size_t power = 4096;
    while (power < bytes)
        power *= 2;
    return power;
}

static size_t ring_bytes(const struct kernel_source *kernel)
{
    size_t sample_bytes = kernel->stack_bytes + RECORD_BYTES;
    size_t samples = THREAD_RING_SAMPLES;
    if (kernel->scope == KERNEL_SCOPE_CPUS)
        samples = kernel->options.held_ns / kernel->options.period_ns + 1;
    size_t bytes = power_of_two_from(samples * sample_bytes);
    if (kernel->scope == KERNEL_SCOPE_THREADS)
        return bytes;
    bytes = bytes > CPU_RING_BYTES_MAX ? CPU_RING_BYTES_MAX : bytes;
    while (bytes * kernel->cpus.count > CPU_RINGS_BYTES_MAX)
        bytes /= 2;
    return bytes < CPU_RING_BYTES_MIN ? CPU_RING_BYTES_MIN : bytes;
}

/* Without CAP_IPC_LOCK the rings share perf_event_mlock_kb of memory for each CPU: then smaller
 * ones must do. */
static int open_ring(const struct kernel_source *kernel, pid_t tid, int cpu, struct ring *ret_ring)
{
    const struct perf_event_attr attr = attributes_of(kernel);
    size_t bytes = ring_bytes(kernel), least = power_of_two_from(2 * kernel->stack_bytes);
    int err = ring_open(&attr, tid, cpu, bytes, RING_READ, ret_ring);
    while (err == -ENOBUFS && bytes > least) {
        bytes /= 2;
        err = ring_open(&attr, tid, cpu, bytes, RING_READ, ret_ring);
    }
    return err;
}

static int enable(struct sampling *sampling)
{
    if (ioctl(sampling->ring.fd, PERF_EVENT_IOC_ENABLE, 0))
        return -errno;
    sampling->checked_ns = monotonic_ns();
    return 0;
}

static int add_sampling(struct kernel_source *kernel, pid_t tid, int cpu)
{
    struct sampling sampling = {.cpu = cpu, .tid = tid};
    if (array_reserve(&kernel->samplings, &kernel->capacity, kernel->count + 1))
        return -ENOMEM;
    int err = open_ring(kernel, tid, cpu, &sampling.ring);
    if (!err && kernel->has_filter)
        err = filter_apply(&kernel->filter, sampling.ring.fd);
    if (!err && kernel->followed_count)
        err = enable(&sampling);
    if (err) {
        ring_close(&sampling.ring);
        return err;
    }
    kernel->samplings[kernel->count++] = sampling;
    return 0;
}

static void drop_sampling(struct kernel_source *kernel, size_t i)
{
    ring_close(&kernel->samplings[i].ring);
    kernel->samplings[i] = kernel->samplings[--kernel->count];
}

static bool has_cpu(const struct kernel_source *kernel, int cpu)
{
    for (size_t i = 0; i < kernel->count; i++) {
        if (kernel->samplings[i].cpu == cpu)
            return true;
    }
    return false;
}

static bool is_online(const struct kernel_source *kernel, int cpu)
{
    for (size_t i = 0; i < kernel->cpus.count; i++) {
        if (kernel->cpus.items[i] == cpu)
            return true;
    }
    return false;
}

/* Whether a CPU's event counts no more. It counts the time that has passed, as we do. */
static bool has_ended(struct sampling *sampling)
{
    uint64_t now_ns = monotonic_ns(), passed_ns = now_ns - sampling->checked_ns, count_ns;
    if (!sampling->checked_ns)
        return false;
    if (read(sampling->ring.fd, &count_ns, sizeof count_ns) != sizeof count_ns)
        return true;
    uint64_t counted_ns = count_ns - sampling->counted_ns;
    sampling->checked_ns = now_ns;
    sampling->counted_ns = count_ns;
    return counted_ns + passed_ns / MISSED_PART < passed_ns;
}

/* A CPU that goes offline ends its event, also for the time when it is back. It may be back before
 * we see that it was gone: all CPUs but one go when the machine is suspended. */
static void drop_ended(struct kernel_source *kernel)
{
    for (size_t i = kernel->count; i-- > 0;) {
        if (!is_online(kernel, kernel->samplings[i].cpu))
            drop_sampling(kernel, i);
    }
    for (size_t checks = 0; checks < CHECKS_EACH && checks < kernel->count; checks++) {
        if (kernel->next_check >= kernel->count)
            kernel->next_check = 0;
        if (has_ended(&kernel->samplings[kernel->next_check]))
            drop_sampling(kernel, kernel->next_check);
        else
            kernel->next_check++;
    }
}

/* Gives each CPU an event that has none. What fails for one CPU may not fail for others. */
static int add_cpus(struct kernel_source *kernel)
{
    int err = 0;
    for (size_t i = 0; i < kernel->cpus.count; i++) {
        int cpu = kernel->cpus.items[i];
        int cpu_err = has_cpu(kernel, cpu) ? 0 : add_sampling(kernel, -1, cpu);
        if (cpu_err && cpu_err != -ENODEV) /* -ENODEV: it has just gone offline */
            err = cpu_err;
    }
    return err;
}

static int update_cpus(struct kernel_source *kernel)
{
    int err = cpus_read_online(&kernel->cpus);
    kernel->cpus_read_ns = monotonic_ns();
    if (err)
        return err;
    drop_ended(kernel);
    return add_cpus(kernel);
}

static void drop_all(struct kernel_source *kernel)
{
    while (kernel->count)
        drop_sampling(kernel, 0);
}

/* Whether threads of our own may be sampled, as any other's of the same user. */
static int try_thread_scope(struct kernel_source *kernel)
{
    kernel->scope = KERNEL_SCOPE_THREADS;
    int err = add_sampling(kernel, 0, -1);
    drop_all(kernel);
    return err;
}

static int try_cpu_scope(struct kernel_source *kernel)
{
    kernel->scope = KERNEL_SCOPE_CPUS;
    kernel->has_filter = filter_open(&kernel->filter) == 0;
    int err = update_cpus(kernel);
    if (err && kernel->has_filter) {
        drop_all(kernel);
        filter_close(&kernel->filter);
        kernel->has_filter = false;
        err = update_cpus(kernel);
    }
    if (!err && kernel->count)
        return 0;
    drop_all(kernel);
    return err ? err : -ENODEV;
}

static int begin(struct kernel_source *kernel)
{
    int err = try_cpu_scope(kernel);
    return err == -EACCES || err == -EPERM ? try_thread_scope(kernel) : err;
}

static pid_t read_ids(const struct record *record, pid_t *ret_tid)
{
    uint32_t ids[2] = {0};
    record_read(record, 0, ids, sizeof ids);
    *ret_tid = (pid_t)ids[1];
    return (pid_t)ids[0];
}

/* A PERF_RECORD_COMM: uint32_t pid, tid; a name; and last, by sample_id_all, pid, tid and time. */
static void take_exec(struct kernel_source *kernel, const struct record *record)
{
    pid_t tid, process_id = read_ids(record, &tid);
    struct followed *followed = find_followed(kernel, process_id);
    size_t body_bytes = record->header.size - sizeof record->header;
    uint64_t at_ns;
    if (followed && body_bytes >= sizeof at_ns &&
        record_read(record, body_bytes - sizeof at_ns, &at_ns, sizeof at_ns))
        followed->exec_ns = ring_time(record->ring, at_ns);
}

/* A PERF_RECORD_LOST: uint64_t id, lost. */
static void take_lost(struct kernel_source *kernel, const struct record *record)
{
    uint64_t lost;
    if (record_read(record, sizeof lost, &lost, sizeof lost))
        kernel->lost += lost;
}

/* The stack: uint64_t size, the memory, and uint64_t dyn_size, how much of it was copied. */
static void read_stack(const struct record *record, size_t offset, struct snapshot *snapshot)
{
    struct stack_copy *stack = &snapshot->stack;
    uint64_t size = 0, copied = 0;
    record_read(record, offset, &size, sizeof size);
    offset += sizeof size;
    if (size && (!record_read(record, offset + size, &copied, sizeof copied) || copied > size))
        copied = 0;
    stack->address = registers_sp(&snapshot->registers);
    stack->bytes = copied < stack->capacity ? copied : stack->capacity;
    if (!record_read(record, offset, stack->memory, stack->bytes))
        stack->bytes = 0;
    snapshot->other_stack.bytes = 0;
    if (snapshot->kernel_stack)
        snapshot->kernel_stack[0] = '\0';
}

enum taken { TAKEN_SAMPLE, TAKEN_OTHER, TAKEN_NOTHING };

/* Takes a sample, unless there is no snapshot for it: then it stays in the ring. */
static enum taken take_sample(struct kernel_source *kernel, const struct record *record,
                              struct observation *ret_observation)
{
    static const struct stack_place no_place = {0};
    struct snapshots *snapshots = kernel->options.snapshots;
    struct sample_head head;
    if (!record_read(record, 0, &head, sizeof head) ||
        !find_followed(kernel, (pid_t)head.process_id))
        return TAKEN_OTHER;
    struct snapshot *snapshot = snapshots_take(snapshots, kernel->stack_bytes, &no_place);
    if (!snapshot)
        return TAKEN_NOTHING;
    size_t stack_at;
    if (!record_read_registers(record, &snapshot->registers, &stack_at)) {
        snapshots_give(snapshots, snapshot, false);
        return TAKEN_OTHER;
    }
    read_stack(record, stack_at, snapshot);
    *ret_observation = (struct observation){
        .process_id = (pid_t)head.process_id,
        .tid = (pid_t)head.tid,
        .sampled_ns = ring_time(record->ring, head.at_ns),
        .evidence = EVIDENCE_SAMPLED,
        .state = THREAD_RUNNING,
        .syscall_number = -1,
        .snapshot = snapshot,
    };
    return TAKEN_SAMPLE;
}

static enum taken take(struct kernel_source *kernel, const struct record *record,
                       struct observation *ret_observation)
{
    switch (record->header.type) {
    case PERF_RECORD_SAMPLE:
        return take_sample(kernel, record, ret_observation);
    case PERF_RECORD_COMM:
        if (record->header.misc & PERF_RECORD_MISC_COMM_EXEC)
            take_exec(kernel, record);
        return TAKEN_OTHER;
    case PERF_RECORD_LOST:
        take_lost(kernel, record);
        return TAKEN_OTHER;
    default:
        return TAKEN_OTHER;
    }
}

/* Takes records from a ring up to its first sample of a process that is followed. */
static enum taken take_from(struct kernel_source *kernel, struct ring *ring,
                            struct observation *ret_observation)
{
    struct record record;
    while (ring_next(ring, &record)) {
        enum taken taken = take(kernel, &record, ret_observation);
        if (taken == TAKEN_NOTHING)
            return TAKEN_NOTHING;
        ring_skip(ring, &record);
        if (taken == TAKEN_SAMPLE)
            return TAKEN_SAMPLE;
    }
    return TAKEN_OTHER;
}

static bool collect(struct source *source, struct observation *ret_observation,
                    enum outcome *ret_outcome)
{
    struct kernel_source *kernel = kernel_of(source);
    for (; kernel->next < kernel->count; kernel->next++) {
        struct ring *ring = &kernel->samplings[kernel->next].ring;
        enum taken taken = take_from(kernel, ring, ret_observation);
        if (taken == TAKEN_NOTHING)
            break;
        if (taken == TAKEN_SAMPLE) {
            *ret_outcome = OUTCOME_OBSERVED;
            return true;
        }
    }
    kernel->next = 0;
    return false;
}

static bool has_thread(const struct kernel_source *kernel, pid_t tid)
{
    for (size_t i = 0; i < kernel->count; i++) {
        if (kernel->samplings[i].tid == tid)
            return true;
    }
    return false;
}

static enum outcome add_thread(struct kernel_source *kernel, pid_t tid)
{
    uint64_t now_ns = monotonic_ns();
    if (kernel->refusal && now_ns - kernel->refused_ns < REFUSAL_HOLDS_NS)
        return OUTCOME_REFUSED;
    int err = kernel->count < THREADS_MAX ? add_sampling(kernel, tid, -1) : -ENOSPC;
    kernel->refusal = 0;
    if (!err)
        return OUTCOME_PENDING;
    /* It has ended, or will in a moment: its event can't be mapped then. */
    if (err == -ESRCH || err == -ENODEV)
        return OUTCOME_GONE;
    kernel->refusal = err;
    kernel->refused_ns = now_ns;
    return OUTCOME_REFUSED;
}

static enum outcome observe(struct source *source, const struct subject *subject,
                            struct observation *observation)
{
    struct kernel_source *kernel = kernel_of(source);
    (void)observation;
    if (subject->stack_limit > KERNEL_STACK_LIMIT_MAX || subject->other_stack.address ||
        subject->asleep.pc)
        return OUTCOME_REFUSED;
    if (kernel->scope == KERNEL_SCOPE_CPUS || has_thread(kernel, subject->tid))
        return OUTCOME_PENDING;
    return add_thread(kernel, subject->tid);
}

enum kernel_scope kernel_scope(const struct source *source)
{
    return kernel_of(source)->scope;
}

int kernel_follow(struct source *source, pid_t process_id)
{
    struct kernel_source *kernel = kernel_of(source);
    if (array_reserve(&kernel->followed, &kernel->followed_capacity, kernel->followed_count + 1))
        return -ENOMEM;
    int err = kernel->has_filter ? filter_add(&kernel->filter, process_id) : 0;
    for (size_t i = 0; i < kernel->count && !kernel->followed_count && !err; i++)
        err = enable(&kernel->samplings[i]);
    if (!err)
        kernel->followed[kernel->followed_count++] = (struct followed){process_id, 0};
    return err;
}

void kernel_unfollow(struct source *source, pid_t process_id)
{
    struct kernel_source *kernel = kernel_of(source);
    struct followed *followed = find_followed(kernel, process_id);
    if (!followed)
        return;
    *followed = kernel->followed[--kernel->followed_count];
    if (kernel->has_filter)
        filter_remove(&kernel->filter, process_id);
}

void kernel_forget(struct source *source, pid_t tid)
{
    struct kernel_source *kernel = kernel_of(source);
    for (size_t i = kernel->count; i-- > 0;) {
        if (kernel->samplings[i].tid == tid)
            drop_sampling(kernel, i);
    }
}

uint64_t kernel_exec_ns(const struct source *source, pid_t process_id)
{
    const struct followed *followed = find_followed(kernel_of(source), process_id);
    return followed ? followed->exec_ns : 0;
}

/* Events can't be changed, so all are replaced. If that fails for one, it is tried again by the
 * next kernel_adjust or `observe`. */
static void resize(struct kernel_source *kernel, size_t stack_bytes)
{
    struct sampling *old = kernel->samplings;
    size_t count = kernel->count;
    kernel->samplings = NULL;
    kernel->count = kernel->capacity = 0;
    kernel->stack_bytes = stack_bytes;
    for (size_t i = 0; i < count; i++) {
        ring_close(&old[i].ring);
        add_sampling(kernel, old[i].tid, old[i].cpu);
    }
    free(old);
    kernel->cpus_read_ns = 0;
}

/* Within what the kernel takes: a multiple of 8. */
static size_t stack_bytes_for(size_t stack_limit)
{
    size_t bytes = stack_limit < STACK_LIMIT_MIN ? STACK_LIMIT_MIN : stack_limit;
    return (bytes < KERNEL_STACK_LIMIT_MAX ? bytes : KERNEL_STACK_LIMIT_MAX) & ~(size_t)7;
}

int kernel_adjust(struct source *source, size_t stack_limit)
{
    struct kernel_source *kernel = kernel_of(source);
    size_t stack_bytes = stack_bytes_for(stack_limit);
    if (stack_bytes != kernel->stack_bytes)
        resize(kernel, stack_bytes);
    if (kernel->scope == KERNEL_SCOPE_CPUS &&
        monotonic_ns() - kernel->cpus_read_ns >= CPUS_READ_EACH_NS)
        return update_cpus(kernel);
    return 0;
}

int kernel_refusal(const struct source *source, pid_t tid)
{
    const struct kernel_source *kernel = kernel_of(source);
    bool needs_none = kernel->scope == KERNEL_SCOPE_CPUS || has_thread(kernel, tid);
    return needs_none ? 0 : kernel->refusal;
}

uint64_t kernel_lost(const struct source *source)
{
    return kernel_of(source)->lost;
}

static void free_kernel(struct source *source)
{
    if (!source)
        return;
    struct kernel_source *kernel = kernel_of(source);
    drop_all(kernel);
    if (kernel->has_filter)
        filter_close(&kernel->filter);
    cpus_free(&kernel->cpus);
    free(kernel->samplings);
    free(kernel->followed);
    free(kernel);
}

int kernel_source_new(const struct kernel_options *options, struct source **ret_source)
{
    struct kernel_source *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return -ENOMEM;
    kernel->source = (struct source){.observe = observe, .collect = collect, .free = free_kernel};
    kernel->options = *options;
    kernel->stack_bytes = stack_bytes_for(options->stack_limit);
    int err = begin(kernel);
    if (err) {
        free_kernel(&kernel->source);
        return err;
    }
    *ret_source = &kernel->source;
    return 0;
}
