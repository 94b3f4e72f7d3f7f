/* The sources of observations. */
#include "fake.h"
#include "observe/proc_source.h"
#include "observe/call.h"

#include <errno.h>

#define STOP_NS 20000 /* how long a thread takes to stop */

static void set_place(struct observation *observation, const struct fake_thread *thread)
{
    struct snapshot *snapshot = observation->snapshot;
    snapshot->registers = (struct registers){.interrupted_call = -1};
    registers_set(&snapshot->registers, architecture.pc, thread->pc);
    registers_set(&snapshot->registers, architecture.sp, thread->sp);
    snapshot->stack.bytes = snapshot->other_stack.bytes = 0;
}

/* ---- Sleeping threads ---- */

enum outcome __wrap_proc_source_observe(struct watches *watches, const struct subject *subject,
                                        struct observation *observation);

static enum outcome read_sleeper(struct fake_thread *thread, const struct subject *subject,
                                 struct observation *observation)
{
    bool has_moved = !thread->was_copied || thread->copied_switches != thread->activity.switches;
    observation->state = THREAD_SLEEPING;
    observation->wait.call =
        thread->has_call ? (struct call_target){.kind = CALL_FUTEX} : subject->call;
    observation->wait.has_call =
        thread->has_call && (has_moved || subject->call.kind != CALL_OTHER);
    if (!has_moved && !subject->wants_copy) {
        observation->evidence = EVIDENCE_UNMOVED;
        return OUTCOME_UNMOVED;
    }
    thread->was_copied = true;
    thread->copied_switches = thread->activity.switches;
    observation->asleep.is_over = thread->is_over;
    observation->wait.syscall_number = thread->syscall_number;
    set_place(observation, thread);
    return OUTCOME_OBSERVED;
}

enum outcome __wrap_proc_source_observe(struct watches *watches, const struct subject *subject,
                                        struct observation *observation)
{
    struct fake_thread *thread = fake_find(subject->tid);
    (void)watches;
    thread->looks++;
    thread->look = *subject;
    thread->looked_ns = fake->now_ns;
    fake->now_ns += fake->look_ns;
    observation->evidence = EVIDENCE_ASLEEP;
    observation->wait.syscall_number = -1;
    observation->now =
        (struct reading){.at_ns = fake->now_ns, .has_activity = true, .activity = thread->activity};
    switch (thread->doing) {
    case FAKE_SLEEPS:
        return read_sleeper(thread, subject, observation);
    case FAKE_SLIPS:
        set_place(observation, thread);
        observation->wait.syscall_number = thread->syscall_number;
        observation->asleep.was_asleep = true;
        thread->was_copied = false;
        return OUTCOME_RUNNING;
    case FAKE_WOKEN:
        observation->evidence = EVIDENCE_WOKEN;
        observation->state = THREAD_RUNNABLE;
        return OUTCOME_WOKEN;
    case FAKE_RUNS:
    case FAKE_WAITS:
        thread->was_copied = false;
        return OUTCOME_RUNNING;
    case FAKE_GONE:
        return OUTCOME_GONE;
    default:
        return OUTCOME_REFUSED;
    }
}

/* ---- Stops ---- */

int __wrap_ptrace_source_new(struct watches *watches, struct ptrace_source **ret_source);
void __wrap_ptrace_source_free(struct ptrace_source *source);
enum outcome __wrap_ptrace_source_observe(struct ptrace_source *source,
                                          const struct subject *subject,
                                          const struct observation *observation);
bool __wrap_ptrace_source_collect(struct ptrace_source *source, struct observation *ret_observation,
                                  enum outcome *ret_outcome);
bool __wrap_ptrace_source_has_room(const struct ptrace_source *source);
size_t __wrap_ptrace_source_pending(const struct ptrace_source *source);
void __wrap_ptrace_source_interrupt(struct ptrace_source *source);
size_t __wrap_ptrace_source_let_go(struct ptrace_source *source, uint64_t heard_ns);
bool __wrap_ptrace_source_awaits(const struct ptrace_source *source, pid_t process_id);
void __wrap_ptrace_source_drop_dead_leader(struct ptrace_source *source, pid_t process_id,
                                           int proc_fd);
bool __wrap_ptrace_source_next_exit(struct ptrace_source *source, pid_t *ret_process_id,
                                    int *ret_status);
void __wrap_ptrace_source_give_up(struct ptrace_source *source);

enum outcome __wrap_ptrace_source_observe(struct ptrace_source *source,
                                          const struct subject *subject,
                                          const struct observation *observation)
{
    struct fake_thread *thread = fake_find(subject->tid);
    (void)source;
    thread->stops++;
    thread->stop = *subject;
    if (thread->doing == FAKE_GONE)
        return OUTCOME_GONE;
    if (thread->is_refused_stop)
        return OUTCOME_REFUSED;
    if (thread->doing == FAKE_SLEEPS && !subject->asleep.pc)
        return OUTCOME_ASLEEP;
    fake->stops[fake->stop_count++] =
        (struct fake_stop){.observation = *observation, .subject = *subject};
    return OUTCOME_PENDING;
}

size_t __wrap_ptrace_source_let_go(struct ptrace_source *source, uint64_t heard_ns)
{
    size_t over = 0;
    (void)source, (void)heard_ns;
    fake->now_ns += STOP_NS;
    for (size_t i = 0; i < fake->stop_count; i++) {
        struct fake_stop *stop = &fake->stops[i];
        struct fake_thread *thread = fake_find(stop->subject.tid);
        if (!stop->has_stopped && !thread->is_slow && thread->slow_until_ns <= fake->now_ns) {
            stop->has_stopped = true;
            thread->let_go_ns = fake->now_ns;
        }
        over += stop->has_stopped;
    }
    return over;
}

bool __wrap_ptrace_source_collect(struct ptrace_source *source, struct observation *ret_observation,
                                  enum outcome *ret_outcome)
{
    (void)source;
    for (size_t i = 0; i < fake->stop_count; i++) {
        struct fake_stop stop = fake->stops[i];
        const struct fake_thread *thread = fake_find(stop.subject.tid);
        if (!stop.has_stopped)
            continue;
        fake->stops[i] = fake->stops[--fake->stop_count];
        *ret_outcome = thread->doing == FAKE_GONE ? OUTCOME_GONE : OUTCOME_OBSERVED;
        stop.observation.evidence = EVIDENCE_STOPPED;
        stop.observation.state = thread->is_group_stopped ? THREAD_STOPPED : THREAD_RUNNING;
        stop.observation.wait.syscall_number = -1;
        stop.observation.stop.asked = stop.subject.asleep;
        stop.observation.stop.visit_ns = stop.subject.visit_ns;
        stop.observation.stop.pause_ns = thread->pause_ns;
        stop.observation.now = (struct reading){
            .at_ns = fake->now_ns, .has_activity = true, .activity = thread->activity};
        set_place(&stop.observation, thread);
        *ret_observation = stop.observation;
        return true;
    }
    return false;
}

/* The contents of a source are never used. */
int __wrap_ptrace_source_new(struct watches *watches, struct ptrace_source **ret_source)
{
    (void)watches;
    *ret_source = (struct ptrace_source *)fake;
    return 0;
}

void __wrap_ptrace_source_free(struct ptrace_source *source)
{
    (void)source;
}

bool __wrap_ptrace_source_has_room(const struct ptrace_source *source)
{
    (void)source;
    return fake->stop_count < STOPS_MAX;
}

size_t __wrap_ptrace_source_pending(const struct ptrace_source *source)
{
    (void)source;
    return fake->stop_count;
}

void __wrap_ptrace_source_interrupt(struct ptrace_source *source)
{
    (void)source;
    fake->interrupts++;
}

bool __wrap_ptrace_source_awaits(const struct ptrace_source *source, pid_t process_id)
{
    (void)source;
    for (size_t i = 0; i < fake->stop_count; i++) {
        if (fake->stops[i].subject.process_id == process_id)
            return true;
    }
    return false;
}

void __wrap_ptrace_source_drop_dead_leader(struct ptrace_source *source, pid_t process_id,
                                           int proc_fd)
{
    (void)source, (void)process_id, (void)proc_fd;
}

bool __wrap_ptrace_source_next_exit(struct ptrace_source *source, pid_t *ret_process_id,
                                    int *ret_status)
{
    (void)source;
    *ret_process_id = fake->exited;
    *ret_status = fake->exit_status;
    fake->exited = 0;
    return *ret_process_id != 0;
}

void __wrap_ptrace_source_give_up(struct ptrace_source *source)
{
    (void)source;
}

/* ---- The kernel's samples ---- */

int __wrap_perf_source_new(const struct perf_source_options *options,
                           struct perf_source **ret_source);
void __wrap_perf_source_free(struct perf_source *source);
bool __wrap_perf_source_collect(struct perf_source *source, struct observation *ret_observation);
enum perf_scope __wrap_perf_source_scope(const struct perf_source *source);
int __wrap_perf_source_follow(struct perf_source *source, pid_t process_id);
void __wrap_perf_source_unfollow(struct perf_source *source, pid_t process_id);
void __wrap_perf_source_forget(struct perf_source *source, pid_t tid);
uint64_t __wrap_perf_source_exec_ns(const struct perf_source *source, pid_t process_id);
bool __wrap_perf_source_covers(struct perf_source *source, pid_t process_id, pid_t tid,
                               size_t stack_limit, const struct stack_place *other);
int __wrap_perf_source_adjust(struct perf_source *source, size_t stack_limit);
int __wrap_perf_source_refusal(const struct perf_source *source, pid_t process_id, pid_t tid);
int __wrap_perf_source_filter_refusal(const struct perf_source *source);
uint64_t __wrap_perf_source_lost(const struct perf_source *source);
int __wrap_perf_source_set_next(struct perf_source *source, int program_fd);

static bool has_event(pid_t process_id, pid_t tid)
{
    const struct fake_process *process = fake_find_process(process_id);
    const struct fake_thread *thread = fake_find(tid);
    return process && process->is_followed && thread && !thread->has_no_event;
}

bool __wrap_perf_source_covers(struct perf_source *source, pid_t process_id, pid_t tid,
                               size_t stack_limit, const struct stack_place *other)
{
    (void)source;
    return has_event(process_id, tid) && stack_limit <= PERF_STACK_LIMIT_MAX && !other->address;
}

/* A sample stays in the ring until there is a snapshot for it. */
bool __wrap_perf_source_collect(struct perf_source *source, struct observation *ret_observation)
{
    static const struct stack_place no_place = {0};
    const struct fake_sample sample = fake->samples[0];
    const struct fake_thread *thread = fake_find(sample.tid);
    (void)source;
    if (!fake->rings_read_ns)
        fake->rings_read_ns = fake->now_ns;
    if (!fake->sample_count)
        return false;
    struct snapshot *snapshot = snapshot_pool_take(fake->snapshots, STACK_LIMIT_FIRST, &no_place);
    if (!snapshot)
        return false;
    memmove(fake->samples, fake->samples + 1, --fake->sample_count * sizeof *fake->samples);
    *ret_observation = (struct observation){
        .process_id = sample.process_id,
        .tid = sample.tid,
        .sampled.at_ns = sample.at_ns,
        .evidence = EVIDENCE_SAMPLED,
        .state = THREAD_RUNNING,
        .wait.syscall_number = -1,
        .snapshot = snapshot,
    };
    if (thread)
        set_place(ret_observation, thread);
    return true;
}

/* Sampling has ended: the record is closed next. */
void __wrap_perf_source_free(struct perf_source *source)
{
    if (source)
        fake->holds_record = false;
}

void fake_sample(pid_t process_id, pid_t tid, uint64_t at_ns)
{
    assert_true(fake->sample_count < FAKE_QUEUE_MAX);
    fake->samples[fake->sample_count++] = (struct fake_sample){process_id, tid, at_ns};
}

int __wrap_perf_source_new(const struct perf_source_options *options,
                           struct perf_source **ret_source)
{
    fake->kernel_opened++;
    fake->snapshots = options->snapshots;
    if (!fake->kernel_error)
        *ret_source = (struct perf_source *)fake;
    return fake->kernel_error;
}

enum perf_scope __wrap_perf_source_scope(const struct perf_source *source)
{
    (void)source;
    return fake->scope;
}

int __wrap_perf_source_follow(struct perf_source *source, pid_t process_id)
{
    struct fake_process *process = fake_find_process(process_id);
    (void)source;
    if (process->is_samples_refused)
        return -E2BIG;
    process->is_followed = true;
    return 0;
}

void __wrap_perf_source_unfollow(struct perf_source *source, pid_t process_id)
{
    (void)source;
    fake->unfollowed++;
    fake_find_process(process_id)->is_followed = false;
}

void __wrap_perf_source_forget(struct perf_source *source, pid_t tid)
{
    (void)source;
    fake_find(tid)->forgotten++;
}

uint64_t __wrap_perf_source_exec_ns(const struct perf_source *source, pid_t process_id)
{
    (void)source;
    return fake_find_process(process_id)->exec_ns;
}

int __wrap_perf_source_adjust(struct perf_source *source, size_t stack_limit)
{
    (void)source;
    fake->adjusted_stack_limit = stack_limit;
    return 0;
}

int __wrap_perf_source_refusal(const struct perf_source *source, pid_t process_id, pid_t tid)
{
    (void)source;
    return has_event(process_id, tid) ? 0 : -EMFILE;
}

int __wrap_perf_source_filter_refusal(const struct perf_source *source)
{
    (void)source;
    return fake->filter_refusal;
}

/* The world runs no Python. */
int __wrap_perf_source_set_next(struct perf_source *source, int program_fd)
{
    (void)source, (void)program_fd;
    return -ENOTSUP;
}

uint64_t __wrap_perf_source_lost(const struct perf_source *source)
{
    (void)source;
    return fake->samples_lost;
}

/* ---- Switches ---- */

int __wrap_switches_new(struct switches **ret_switches);
void __wrap_switches_free(struct switches *switches);
enum outcome __wrap_switches_observe(const struct switches *switches, const struct subject *subject,
                                     struct observation *observation);
int __wrap_switches_add(struct switches *switches, enum switches_kind kind, uint32_t thread,
                        pid_t tid);
bool __wrap_switches_have(const struct switches *switches, enum switches_kind kind,
                          uint32_t thread);
void __wrap_switches_complete(const struct switches *switches, uint32_t thread,
                              struct registers *registers);
void __wrap_switches_drop(struct switches *switches, enum switches_kind kind, uint32_t thread);
uint64_t __wrap_switches_open_windows(struct switches *switches, uint64_t begin_ns);
void __wrap_switches_close_windows(struct switches *switches);
enum outcome __wrap_switches_observe_at_tick(struct switches *switches,
                                             const struct subject *subject, struct watch *watch,
                                             enum outcome outcome, struct observation *observation);

/* The threads that have an event of a kind, by number. */
static struct fake_thread *with_event[SWITCHES_KINDS][FAKE_THREADS_MAX];

static bool *event_flag(struct fake_thread *thread, enum switches_kind kind)
{
    return kind == SWITCHES_ALWAYS ? &thread->is_armed : &thread->has_window;
}

enum outcome __wrap_switches_observe(const struct switches *switches, const struct subject *subject,
                                     struct observation *observation)
{
    const struct fake_thread *thread = fake_find(subject->tid);
    (void)switches;
    if (!thread->is_armed)
        return OUTCOME_REFUSED;
    if (thread->doing != FAKE_WAITS)
        return OUTCOME_RUNNING;
    observation->evidence = EVIDENCE_WAITING;
    observation->state = THREAD_RUNNABLE;
    set_place(observation, thread);
    return OUTCOME_OBSERVED;
}

void __wrap_switches_free(struct switches *switches)
{
    for (uint32_t i = 0; i < FAKE_THREADS_MAX; i++) {
        __wrap_switches_drop(switches, SWITCHES_ALWAYS, i);
        __wrap_switches_drop(switches, SWITCHES_IN_WINDOW, i);
    }
}

int __wrap_switches_new(struct switches **ret_switches)
{
    memset(with_event, 0, sizeof with_event);
    *ret_switches = (struct switches *)fake;
    return 0;
}

int __wrap_switches_add(struct switches *switches, enum switches_kind kind, uint32_t thread,
                        pid_t tid)
{
    if (kind == SWITCHES_ALWAYS && fake->arm_error)
        return fake->arm_error;
    if (!switches)
        return 0;
    with_event[kind][thread] = fake_find(tid);
    *event_flag(with_event[kind][thread], kind) = true;
    return 0;
}

bool __wrap_switches_have(const struct switches *switches, enum switches_kind kind, uint32_t thread)
{
    return switches && with_event[kind][thread];
}

void __wrap_switches_complete(const struct switches *switches, uint32_t thread,
                              struct registers *registers)
{
    (void)switches, (void)thread, (void)registers;
}

void __wrap_switches_drop(struct switches *switches, enum switches_kind kind, uint32_t thread)
{
    if (!switches || !with_event[kind][thread])
        return;
    *event_flag(with_event[kind][thread], kind) = false;
    with_event[kind][thread] = NULL;
}

uint64_t __wrap_switches_open_windows(struct switches *switches, uint64_t begin_ns)
{
    bool are_any = false;
    for (uint32_t i = 0; switches && i < FAKE_THREADS_MAX; i++)
        are_any |= with_event[SWITCHES_IN_WINDOW][i] != NULL;
    if (!are_any || fake->is_window_open)
        return UINT64_MAX;
    if (fake->now_ns < begin_ns)
        return begin_ns;
    fake->is_window_open = true;
    fake->window_opened_ns = fake->now_ns;
    fake->windows_opened++;
    return UINT64_MAX;
}

void __wrap_switches_close_windows(struct switches *switches)
{
    (void)switches;
    fake->is_window_open = false;
}

enum outcome __wrap_switches_observe_at_tick(struct switches *switches,
                                             const struct subject *subject, struct watch *watch,
                                             enum outcome outcome, struct observation *observation)
{
    struct fake_thread *thread = fake_find(subject->tid);
    (void)watch;
    if (!switches || !thread->has_window || !fake->is_window_open ||
        (outcome != OUTCOME_RUNNING && outcome != OUTCOME_OBSERVED))
        return outcome;
    if (outcome == OUTCOME_OBSERVED && (thread->was_awake || thread->slept_pc))
        thread->was_copied = false;
    if (outcome == OUTCOME_OBSERVED && thread->was_awake)
        return OUTCOME_ASLEEP;
    if (!thread->slept_pc)
        return outcome;
    observation->evidence = EVIDENCE_ASLEEP;
    observation->asleep = (struct sleep_seen){.is_over = true};
    observation->state = THREAD_SLEEPING;
    set_place(observation, thread);
    registers_set(&observation->snapshot->registers, architecture.pc, thread->slept_pc);
    return OUTCOME_OBSERVED;
}
