#include "sampler/kernel_samples.h"
#include "base/clock.h"
#include "observe/bpf/switch_record.h"
#include "proc/kallsyms.h"
#include "sampler/listing.h"
#include "sampler/off_cpu_samples.h"
#include "sampler/otel_context.h"
#include "sampler/python.h"
#include "sampler/report.h"

#include <errno.h>

/* If the kernel has not sampled a thread that ran for this many periods, something is wrong, such
 * as a CPU without an event. */
#define SILENT_PERIODS 64
#define ADJUST_EACH_NS 1000000000u
#define ROOMY_PART 4
/* The sampling thread may be late by this much. */
#define HELD_NS 500000000
/* A dump wants one sample of each thread, soon. It collects samples about once a period. */
#define DUMP_PERIOD_NS 1000000
#define DUMP_HELD_NS (4 * DUMP_PERIOD_NS)
/* How long a dump waits for a thread's sample. A thread on a CPU has one within a period or two.
 * The rest is for threads that take turns on a CPU, a few milliseconds each
 * (sysctl_sched_base_slice in the kernel's kernel/sched/fair.c). */
#define DUMP_PATIENCE_NS 10000000

/* Kernel addresses are useless without symbols. */
static bool may_name_kernel(struct sampler *sampler)
{
    int err = sampler->options->has_kernel_stacks ? kallsyms_check(KALLSYMS_PATH) : 0;
    sampler->counts.kernel_names_refusal = -err;
    return sampler->options->has_kernel_stacks && !err;
}

static struct perf_source_options options_for(struct sampler *sampler)
{
    bool is_dump = sampler->options->is_dump;
    return (struct perf_source_options){
        .period_ns = is_dump ? DUMP_PERIOD_NS : sampler->clock.ticks.period_ns,
        .seed = sampler->clock.ticks.seed,
        .held_ns = is_dump ? DUMP_HELD_NS : HELD_NS,
        /* In a dump, no later sample makes up for one that is cut off. */
        .stack_limit = is_dump ? PERF_STACK_LIMIT_MAX : STACK_LIMIT_FIRST,
        .has_kernel_chains = may_name_kernel(sampler),
        .snapshots = channel_snapshots(sampler->channel),
    };
}

/* If a process can't be followed, its threads are stopped instead. */
int kernel_samples_follow(struct sampler *sampler, pid_t process_id)
{
    struct perf_source *source = sampler->kernel.source;
    int err = source ? perf_source_follow(source, process_id) : 0;
    sampler->counts.filter_refusal = source ? -perf_source_filter_refusal(source) : 0;
    return err == -ENOMEM ? err : 0;
}

static int follow_all(struct sampler *sampler)
{
    int err = 0;
    for (size_t i = 0; i < sampler->process_count && !err; i++)
        err = kernel_samples_follow(sampler, sampler->processes[i]->process.pid);
    return err;
}

/* Once there is a record, samples include Python frames. */
static void join_record(struct kernel_samples *kernel, const struct switch_record *record)
{
    if (kernel->has_joined_record || !record)
        return;
    /* If this fails, Python threads are stopped. */
    perf_source_set_next(kernel->source, switch_record_sample_program(record));
    kernel->has_joined_record = true;
}

int kernel_samples_begin(struct sampler *sampler)
{
    struct kernel_samples *kernel = &sampler->kernel;
    if (sampler->options->capture == CAPTURE_PTRACE || kernel->was_begun)
        return 0;
    kernel->was_begun = true;
    const struct perf_source_options options = options_for(sampler);
    int err = perf_source_new(&options, &kernel->source);
    sampler->counts.kernel_refusal = -err;
    sampler->counts.has_kernel_samples = !err;
    if (err)
        return sampler->options->capture == CAPTURE_KERNEL || err == -ENOMEM ? err : 0;
    kernel->stack_limit = options.stack_limit;
    sampler->counts.has_thread_events = perf_source_scope(kernel->source) == PERF_SCOPE_THREADS;
    return follow_all(sampler);
}

/* Whether samples include the thread's Python frames, which are not on the stack that the kernel
 * copies. */
static bool has_python(struct sampler *sampler, const struct thread *thread)
{
    struct perf_source *source = sampler->kernel.source;
    return source && perf_source_has_next(source) && sampler->off_cpu.record &&
           !thread->kernel.lacks_python &&
           switch_record_has_python(sampler->off_cpu.record, thread->tid);
}

static bool may_sample(struct sampler *sampler, const struct sampled_process *process,
                       const struct thread *thread)
{
    struct perf_source *source = sampler->kernel.source;
    const struct thread_wants *wants = &thread->wants;
    if (python_of(process, thread).layout && sampler->options->capture != CAPTURE_KERNEL &&
        !has_python(sampler, thread))
        return false;
    return source && perf_source_covers(source, process->process.pid, thread->tid,
                                        wants->stack_limit, &wants->other_stack);
}

/* Whether a dump waits for the kernel's sample of the thread, instead of stopping it. */
static bool await(struct sampler *sampler, const struct sampled_process *process,
                  struct thread *thread)
{
    struct thread_kernel *own = &thread->kernel;
    if (kernel_samples_begin(sampler) || !may_sample(sampler, process, thread))
        return false;
    uint64_t now_ns = monotonic_ns();
    if (!own->awaited_ns)
        own->awaited_ns = now_ns;
    if (now_ns - own->awaited_ns >= DUMP_PATIENCE_NS)
        return false;
    sampler->kernel.is_awaited = true;
    return true;
}

/* The thread will be stopped, although the kernel could sample it if there were an event. */
static void note_gap(struct sampler *sampler, const struct sampled_process *process,
                     struct thread *thread)
{
    struct perf_source *source = sampler->kernel.source;
    int err = source ? perf_source_refusal(source, process->process.pid, thread->tid) : 0;
    if (!err)
        return;
    thread_count_once(thread, FACT_WITHOUT_EVENT, &sampler->counts.threads_without_event);
    sampler->counts.event_refusal = -err;
}

bool kernel_samples_cover(struct sampler *sampler, const struct sampled_process *process,
                          struct thread *thread, uint64_t running_ns)
{
    struct thread_kernel *own = &thread->kernel;
    uint64_t silent_ns = SILENT_PERIODS * sampler->clock.ticks.period_ns;
    if (sampler->options->is_dump)
        return await(sampler, process, thread);
    if (!may_sample(sampler, process, thread)) {
        note_gap(sampler, process, thread);
        return false;
    }
    /* The kernel samples only running threads. A thread that waits for a CPU all the time, or has
     * hardly run until the end, is stopped once, so that there is at least one stack of it. */
    if (!(thread->facts & (FACT_KERNEL_SAMPLED | FACT_STOPPED)) &&
        (running_ns == own->running_ns || sampler->clock.end_ns))
        return false;
    /* The other cases are the first look, and a thread that took over this id by executing a
     * program. */
    if (own->is_sampled || !own->sampled_running_ns || running_ns < own->sampled_running_ns)
        own->sampled_running_ns = running_ns;
    own->is_sampled = false;
    own->running_ns = running_ns;
    if (running_ns - own->sampled_running_ns < silent_ns)
        return true;
    /* An event of its own may have ended: another thread executed a program and got this id. */
    if (!own->was_renewed)
        perf_source_forget(sampler->kernel.source, thread->tid);
    own->was_renewed = true;
    thread_count_once(thread, FACT_UNSAMPLED, &sampler->counts.threads_unsampled);
    return false;
}

/* A dump takes a thread's first sample after the look that found it running. If the process has
 * executed another program since, its mappings are known in the next round. */
static enum program_match match_in_dump(const struct sampled_process *process,
                                        const struct thread *thread, uint64_t sampled_ns)
{
    const struct thread_wants *wants = &thread->wants;
    uint64_t awaited_ns = thread->kernel.awaited_ns;
    bool is_awaited = awaited_ns && sampled_ns >= awaited_ns && thread_is_counted(thread) &&
                      !wants->is_dumped && !thread_is_in_a_stop(thread);
    /* A thread that turns out to run Python will be stopped, for its Python frames. */
    return is_awaited && !python_of(process, thread).layout && process->program &&
                   program_is_current(process->program)
               ? PROGRAM_CURRENT
               : PROGRAM_NONE;
}

static enum program_match find_program(struct sampler *sampler,
                                       const struct observation *observation,
                                       struct sampled_process **ret_process,
                                       struct thread **ret_thread)
{
    struct sampled_process *process = sampler_process(sampler, observation->process_id);
    struct thread *thread = sampled_process_thread(process, observation->tid);
    uint64_t end_ns = sampler->clock.end_ns;
    *ret_process = process;
    *ret_thread = thread;
    if (sampler->options->is_dump)
        return thread ? match_in_dump(process, thread, observation->sampled.at_ns) : PROGRAM_NONE;
    if (observation->sampled.at_ns < sampler->clock.ticks.start_ns ||
        (end_ns && observation->sampled.at_ns >= end_ns))
        return PROGRAM_NONE;
    if (!thread)
        return PROGRAM_LATER;
    if (!thread_is_counted(thread) || !may_sample(sampler, process, thread))
        return PROGRAM_NONE;
    uint64_t exec_ns = perf_source_exec_ns(sampler->kernel.source, process->process.pid);
    return sampled_process_match(process, exec_ns, observation->sampled.at_ns);
}

static void note(struct sampler *sampler, struct thread *thread)
{
    struct kernel_samples *kernel = &sampler->kernel;
    struct thread_kernel *own = &thread->kernel;
    sampler->counts.kernel_samples++;
    thread_count_once(thread, FACT_KERNEL_SAMPLED, &sampler->counts.threads_kernel_sampled);
    own->was_renewed = false;
    own->is_sampled = true;
    own->awaited_ns = 0;
    if (thread->wants.stack_limit > kernel->wanted_stack_limit)
        kernel->wanted_stack_limit = thread->wants.stack_limit;
}

/* If the record had no room for the frames, they are missing only this time. If there are more
 * frames than it copies, that will happen again, so the thread is stopped from now on. */
static int read_python(struct sampler *sampler, struct sampled_process *process,
                       struct thread *thread, const struct observation *observation)
{
    if (!python_of(process, thread).layout || !sampler->off_cpu.record)
        return 0;
    int err = off_cpu_samples_take(sampler);
    if (!err)
        thread->kernel.lacks_python = python_take_copy(process, thread, observation->sampled.at_ns,
                                                       observation->snapshot) == SWITCH_FRAMES_CUT;
    return err;
}

/* Sends or drops the sample, and returns true; returns false if its thread or program may become
 * known later. */
static bool send_or_drop(struct sampler *sampler, struct observation *observation, bool is_last_try,
                         int *ret_err)
{
    struct sampled_process *process;
    struct thread *thread;
    enum program_match match = find_program(sampler, observation, &process, &thread);
    *ret_err = 0;
    if (match == PROGRAM_LATER && !is_last_try)
        return false;
    if (match != PROGRAM_CURRENT) {
        sampler->counts.kernel_samples_dropped += match == PROGRAM_LATER;
        snapshot_pool_give(channel_snapshots(sampler->channel), observation->snapshot, false);
        return true;
    }
    snapshot_end_stack(observation->snapshot, &process->areas);
    note(sampler, thread);
    *ret_err = read_python(sampler, process, thread, observation);
    if (*ret_err) {
        snapshot_pool_give(channel_snapshots(sampler->channel), observation->snapshot, false);
        return true;
    }
    otel_context_read_sampled(sampler, process, thread, observation);
    listing_read_begin(sampler, process, thread);
    *ret_err = report_sampled(sampler, process, thread, observation);
    return true;
}

static int retry_held(struct sampler *sampler, bool is_last_try)
{
    struct kernel_samples *kernel = &sampler->kernel;
    size_t kept = 0;
    int err = 0;
    for (size_t i = 0; i < kernel->held_count; i++) {
        int sample_err;
        if (!send_or_drop(sampler, &kernel->held[i], is_last_try, &sample_err))
            kernel->held[kept++] = kernel->held[i];
        err = err ? err : sample_err;
    }
    kernel->held_count = kept;
    return err;
}

/* Sets how much stack samples hold to what recently running threads need: raised immediately,
 * lowered after a while. */
static int adjust(struct sampler *sampler)
{
    struct kernel_samples *kernel = &sampler->kernel;
    uint64_t now_ns = monotonic_ns();
    bool is_more = kernel->wanted_stack_limit > kernel->stack_limit &&
                   kernel->stack_limit < PERF_STACK_LIMIT_MAX;
    if (!is_more && now_ns - kernel->adjusted_ns < ADJUST_EACH_NS)
        return 0;
    bool is_less = kernel->wanted_stack_limit &&
                   kernel->wanted_stack_limit <= kernel->stack_limit / ROOMY_PART;
    if (is_more || is_less)
        kernel->stack_limit = kernel->wanted_stack_limit;
    if (kernel->stack_limit > PERF_STACK_LIMIT_MAX)
        kernel->stack_limit = PERF_STACK_LIMIT_MAX;
    kernel->wanted_stack_limit = 0;
    kernel->adjusted_ns = now_ns;
    int err = perf_source_adjust(kernel->source, kernel->stack_limit);
    return err == -ENOMEM ? err : 0;
}

int kernel_samples_take(struct sampler *sampler, bool is_listed)
{
    struct kernel_samples *kernel = &sampler->kernel;
    struct observation observation;
    if (!kernel->source)
        return 0;
    join_record(kernel, sampler->off_cpu.record);
    int err = retry_held(sampler, is_listed);
    while (!err && perf_source_collect(kernel->source, &observation)) {
        bool has_room = kernel->held_count < KERNEL_SAMPLES_HELD;
        if (!send_or_drop(sampler, &observation, is_listed || !has_room, &err))
            kernel->held[kernel->held_count++] = observation;
    }
    sampler->counts.kernel_samples_lost = perf_source_lost(kernel->source);
    return err || !is_listed || sampler->options->is_dump ? err : adjust(sampler);
}

void kernel_samples_end(struct sampler *sampler)
{
    struct kernel_samples *kernel = &sampler->kernel;
    for (size_t i = 0; i < kernel->held_count; i++)
        snapshot_pool_give(channel_snapshots(sampler->channel), kernel->held[i].snapshot, false);
    kernel->held_count = 0;
    perf_source_free(kernel->source);
    kernel->source = NULL;
    kernel->was_begun = kernel->has_joined_record = false;
}
