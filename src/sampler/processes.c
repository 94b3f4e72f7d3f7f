#include "sampler/processes.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/starter.h"
#include "sampler/goroutines.h"
#include "sampler/kernel_samples.h"
#include "sampler/listing.h"
#include "sampler/naming.h"
#include "sampler/off_cpu_samples.h"
#include "sampler/python.h"
#include "sampler/report.h"
#include "sampler/switch_events.h"

#include <errno.h>
#include <stdlib.h>

/* How long the accounts of a process's threads are read before the first tick: time for some
 * hundred threads. */
#define BEGINS_AT_START_NS 5000000
/* How often we check whether a process still runs its program, even if an execve would be
 * reported. */
#define PROGRAM_CHECKED_EACH_NS 100000000

static void close_process(struct sampled_process *process)
{
    program_release(process->program);
    stack_areas_free(&process->areas);
    python_forget(&process->python);
    goroutines_forget(&process->goroutines);
    threads_free(&process->threads);
    free(process->awake.items);
    free(process->names_due.tids);
    thread_list_free(&process->listing.list);
    process_close(&process->process);
    free(process);
}

static int add(struct sampler *sampler, pid_t pid, struct sampled_process **ret_process)
{
    if (array_reserve(&sampler->processes, &sampler->process_capacity, sampler->process_count + 1))
        return -ENOMEM;
    struct sampled_process *process = calloc(1, sizeof *process);
    if (!process)
        return -ENOMEM;
    int err = process_open(pid, &process->process);
    if (err) {
        free(process);
        return err;
    }
    process->known_ns = boot_ns();
    process->has_inner_ids = procfs_inner_tid(process->process.proc_fd, pid) != pid;
    err = report_process(sampler, process);
    if (!err)
        err = kernel_samples_follow(sampler, pid);
    if (!err && !sampler->options->is_dump)
        err = cpu_limits_add(&sampler->cpu_limits, process->process.proc_fd);
    if (!err)
        off_cpu_samples_follow(sampler, process);
    if (err) {
        report_to_collector(sampler, (struct notice){NOTICE_GONE, .process = process->objects});
        close_process(process);
        return err;
    }
    sampler->processes[sampler->process_count++] = process;
    *ret_process = process;
    return 0;
}

int processes_add(struct sampler *sampler, pid_t pid)
{
    struct sampled_process *process;
    return sampler_process(sampler, pid) ? -EEXIST : add(sampler, pid, &process);
}

/* CPU events report each execve, and copies are only made of the current program. */
static bool may_have_changed(const struct sampler *sampler, const struct sampled_process *process,
                             uint64_t now_ns)
{
    const struct perf_source *kernel = sampler->kernel.source;
    if (!process->program || !kernel || perf_source_scope(kernel) != PERF_SCOPE_CPUS ||
        sampler->options->is_dump)
        return true;
    return perf_source_exec_ns(kernel, process->process.pid) > process->span.current_ns ||
           now_ns - process->program_checked_ns >= PROGRAM_CHECKED_EACH_NS;
}

int processes_update_program(struct sampler *sampler, struct sampled_process *process)
{
    uint64_t now_ns = monotonic_ns();
    if (!may_have_changed(sampler, process, now_ns))
        return 0;
    process->program_checked_ns = now_ns;
    if (process->program && program_is_current(process->program)) {
        process->span.current_ns = now_ns;
        return 0;
    }
    int err = report_program_ended(sampler, process);
    if (err)
        return err;
    stack_areas_free(&process->areas);
    process->context = (struct context_place){0};
    python_forget(&process->python);
    goroutines_forget(&process->goroutines);
    process->leaves_stack = process->is_in_a_hurry = false;
    process->span.has_before = process->span.opened_ns != 0;
    process->span.opened_ns = process->span.current_ns = monotonic_ns();
    err = program_open(&process->process, sampler->programs_begun, process->number,
                       &process->program);
    if (!err) {
        sampler->programs_begun++;
        process->areas.mem_fd_plus_1 = process->program->mem_fd + 1;
        int kept_fd = process->program->first_maps_fd;
        err = stack_areas_read(&process->areas, kept_fd >= 0 ? kept_fd : process->program->maps_fd);
    }
    if (!err)
        err = report_to_collector(sampler,
                                  (struct notice){.kind = NOTICE_PROGRAM,
                                                  .process = process->objects,
                                                  .program = program_hold(process->program)});
    if (process->span.has_before)
        off_cpu_samples_follow(sampler, process); /* its permissions may have changed */
    sampler->counts.lacks_files = sampler->counts.lacks_files || err == -EMFILE || err == -ENFILE;
    for (size_t i = 0; i < process->threads.count; i++) {
        struct thread *thread = &process->threads.items[i];
        struct watch *watch = watches_get(&sampler->watches, thread->number);
        if (watch)
            watch->thread_pointer = 0;
        naming_expire(thread);
        thread->wants.unasked = 0;
        thread->kernel.lacks_python = thread->switch_events.needs_registers = false;
        threads_forget_sleep(&process->threads, thread);
        /* Its events may belong to a thread that is gone: another thread executed the program, and
         * got its id. */
        switch_events_close(sampler, thread);
    }
    return err == -ENOMEM ? err : 0;
}

int processes_try_objects(struct sampler *sampler, enum object_kind kind)
{
    int err = 0;
    for (size_t i = 0; i < sampler->process_count && !err; i++)
        err = processes_update_program(sampler, sampler->processes[i]);
    return err ? err : collector_try(sampler->collector, kind);
}

size_t processes_count_threads(const struct sampler *sampler)
{
    size_t count = 0;
    for (size_t i = 0; i < sampler->process_count; i++)
        count += process_count_threads(&sampler->processes[i]->process);
    return count;
}

static int start(struct sampler *sampler, struct sampled_process *process)
{
    int err = sampler_lists_threads(sampler->options) ? listing_update_whole(sampler, process) : 0;
    if (err)
        return err;
    listing_read_begins(sampler, process, monotonic_ns() + BEGINS_AT_START_NS);
    process->turns.last_round_ns = process->turns.round_ns = sampler->clock.ticks.start_ns;
    return processes_update_program(sampler, process);
}

/* Adds the threads of a process that was born while recording. Like a new thread, it also
 * represents those that lived and died unseen since the last search. */
static int join(struct sampler *sampler, struct sampled_process *process, uint64_t unseen_ns)
{
    process->listing.listed.done_ns = unseen_ns;
    process->turns.last_round_ns = process->turns.round_ns = sampler->descendants.looked_before_ns;
    return sampler_lists_threads(sampler->options) ? listing_update_whole(sampler, process) : 0;
}

/* Adds a descendant; counts it if it can't be sampled. A descendant that is already gone is like
 * those that are never found: the others represent it. */
static int take_in(struct sampler *sampler, const struct relative *found, bool is_start)
{
    struct sampled_process *process;
    char name[THREAD_NAME_BYTES];
    if (is_start && procfs_process_name(found->pid, name) && is_helper_name(name))
        return 0;
    int err = add(sampler, found->pid, &process);
    if (err == -ENOMEM)
        return err;
    if (err) {
        bool is_none = err == -ESRCH || err == -EINVAL; /* it is gone, or a thread */
        sampler->counts.processes_refused += !is_none;
        return 0;
    }
    process->is_followed = true;
    return is_start ? start(sampler, process) : join(sampler, process, found->unseen_ns);
}

static int look_for_descendants(struct sampler *sampler, bool is_start)
{
    struct descendants *descendants = &sampler->descendants;
    int err = descendants_look(descendants, monotonic_ns());
    for (size_t i = 0; i < descendants->found.count && !err; i++)
        err = take_in(sampler, &descendants->found.items[i], is_start);
    return err;
}

int processes_start(struct sampler *sampler)
{
    int err = 0;
    for (size_t i = 0; i < sampler->process_count && !err; i++)
        err = start(sampler, sampler->processes[i]);
    if (!sampler->options->has_children)
        return err;
    for (size_t i = 0; i < sampler->process_count && !err; i++)
        err = descendants_add(&sampler->descendants, sampler->processes[i]->process.pid);
    return err ? err : look_for_descendants(sampler, true);
}

int processes_find(struct sampler *sampler)
{
    return sampler->options->has_children ? look_for_descendants(sampler, false) : 0;
}

void processes_drop_exited(struct sampler *sampler)
{
    size_t kept = 0;
    for (size_t i = 0; i < sampler->process_count; i++) {
        struct sampled_process *process = sampler->processes[i];
        bool is_gone = process->is_followed && process->has_exited &&
                       !ptrace_source_awaits(sampler->stopped, process->process.pid);
        if (!is_gone) {
            sampler->processes[kept++] = process;
            continue;
        }
        for (size_t j = 0; j < process->threads.count; j++) {
            watches_forget(&sampler->watches, process->threads.items[j].number);
            numbers_take_back(&sampler->numbers, process->threads.items[j].number);
        }
        report_program_ended(sampler, process);
        close_process(process);
    }
    sampler->process_count = kept;
}

bool processes_all_exited(const struct sampler *sampler)
{
    for (size_t i = 0; i < sampler->process_count; i++) {
        const struct sampled_process *process = sampler->processes[i];
        if (process->process.pid == sampler->command.pid)
            return process->has_exited;
    }
    for (size_t i = 0; i < sampler->process_count; i++) {
        if (!sampler->processes[i]->has_exited)
            return false;
    }
    return true;
}

void processes_free(struct sampler *sampler)
{
    for (size_t i = 0; i < sampler->process_count; i++)
        close_process(sampler->processes[i]);
    free(sampler->processes);
    descendants_free(&sampler->descendants);
}
