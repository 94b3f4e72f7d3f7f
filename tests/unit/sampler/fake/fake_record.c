/* The record of switches (observe/bpf/switch_record.h), as the kernel would keep it, of departures
 * that the test scripts. */
#include "fake.h"

#include <errno.h>
#include <poll.h>

/* Only its address is used. */
static char the_record;

int __wrap_switch_record_open(const struct switch_options *options,
                              struct switch_record **ret_record);
void __wrap_switch_record_free(struct switch_record *record);
int __wrap_switch_record_follow(struct switch_record *record, pid_t process_id);
void __wrap_switch_record_unfollow(struct switch_record *record, pid_t process_id);
void __wrap_switch_record_set_ticks(struct switch_record *record, const struct ticks *ticks);
int __wrap_switch_record_read(struct switch_record *record, pid_t tid, struct slot_view *ret_view);
bool __wrap_switch_record_is_unmoved(const struct switch_record *record,
                                     const struct slot_view *view);
bool __wrap_switch_record_has_hidden_returns(const struct switch_record *record);
void __wrap_switch_record_acknowledge(struct switch_record *record, const struct slot_view *view,
                                      uint64_t tick);
void __wrap_switch_record_want_python(const struct switch_record *record, uint32_t slot,
                                      uint32_t generation, const struct python_thread *thread);
void __wrap_switch_record_want_stack(const struct switch_record *record, uint32_t slot,
                                     uint32_t generation, size_t bytes, bool wants_other);
int __wrap_switch_record_drain(struct switch_record *record, switch_take_fn *take, void *argument);
struct switch_counters __wrap_switch_record_counters(const struct switch_record *record);
int __wrap_switch_record_sample_program(const struct switch_record *record);
bool __wrap_switch_record_read_futex(const struct switch_record *record,
                                     const struct slot_view *view,
                                     unsigned char ret_futex[SWITCH_FUTEX_BYTES],
                                     bool *ret_has_before);

void __wrap_switch_record_watch_cpus(struct switch_record *record, bool is_wanted);
bool __wrap_switch_record_find_cpu_user(struct switch_record *record, unsigned cpu,
                                        uint64_t tick_ns, struct cpu_user *ret_user);

struct departure *fake_departs(struct fake_thread *thread, enum thread_state state, uint64_t out_ns,
                               uint64_t runnable_ns, uint64_t in_ns)
{
    assert_true(thread->departure_count < FAKE_DEPARTURES_MAX);
    struct departure *departure = &thread->departures[thread->departure_count++];
    *departure = (struct departure){
        .tid = thread->tid,
        .process_id = thread->process->pid,
        .number = thread->departure_count,
        .out_ns = out_ns,
        .runnable_ns = state == THREAD_RUNNABLE ? out_ns : runnable_ns,
        .in_ns = in_ns,
        .state = state,
        .syscall_number = state == THREAD_RUNNABLE ? -1 : thread->syscall_number,
        .registers = {.interrupted_call = -1},
    };
    registers_set(&departure->registers, architecture.pc, thread->pc);
    registers_set(&departure->registers, architecture.sp, thread->sp);
    return departure;
}

void __wrap_switch_record_watch_cpus(struct switch_record *record, bool is_wanted)
{
    (void)record;
    assert_true(fake->are_cpus_watched != is_wanted);
    fake->are_cpus_watched = is_wanted;
}

bool __wrap_switch_record_find_cpu_user(struct switch_record *record, unsigned cpu,
                                        uint64_t tick_ns, struct cpu_user *ret_user)
{
    (void)record;
    assert_true(fake->are_cpus_watched);
    fake->asked_cpu = cpu;
    fake->asked_tick_ns = tick_ns;
    *ret_user = fake->cpu_user;
    return fake->cpu_user.is_known;
}

int __wrap_switch_record_open(const struct switch_options *options,
                              struct switch_record **ret_record)
{
    while (fake->holds_record)
        poll(NULL, 0, 1); /* the thread that opens it is a real one, and nanosleep(2) is not */
    fake->records_opened++;
    if (options->log) {
        options->log(options->log_argument, "the verifier ");
        options->log(options->log_argument, "speaks\n");
    }
    if (!fake->record_error)
        *ret_record = (struct switch_record *)&the_record;
    return fake->record_error;
}

void __wrap_switch_record_free(struct switch_record *record)
{
    fake->records_freed += record != NULL;
}

int __wrap_switch_record_follow(struct switch_record *record, pid_t process_id)
{
    (void)record;
    fake_find_process(process_id)->is_recorded = true;
    return 0;
}

void __wrap_switch_record_unfollow(struct switch_record *record, pid_t process_id)
{
    (void)record;
    fake_find_process(process_id)->is_recorded = false;
}

void __wrap_switch_record_set_ticks(struct switch_record *record, const struct ticks *ticks)
{
    (void)record;
    fake->recorded_ticks = *ticks;
}

/* The thread's last departure so far; NULL: none yet. */
static const struct departure *last_departure(const struct fake_thread *thread)
{
    const struct departure *last = NULL;
    for (size_t i = 0; i < thread->departure_count; i++) {
        if (thread->departures[i].out_ns <= fake->now_ns)
            last = &thread->departures[i];
    }
    return last;
}

static uint64_t by_now(uint64_t at_ns)
{
    return at_ns <= fake->now_ns ? at_ns : 0;
}

int __wrap_switch_record_read(struct switch_record *record, pid_t tid, struct slot_view *ret_view)
{
    const struct fake_thread *thread = fake_find(tid);
    (void)record;
    const struct departure *departure =
        thread && thread->process->is_recorded ? last_departure(thread) : NULL;
    if (!departure)
        return -ENOENT;
    *ret_view = (struct slot_view){.departure = *departure};
    ret_view->departure.runnable_ns = by_now(departure->runnable_ns);
    ret_view->departure.in_ns = by_now(departure->in_ns);
    return 0;
}

/* A thread that slips is back on a CPU by now. */
bool __wrap_switch_record_is_unmoved(const struct switch_record *record,
                                     const struct slot_view *view)
{
    struct fake_thread *thread = fake_find(view->departure.tid);
    (void)record;
    if (!thread->slips)
        return true;
    thread->slips--;
    for (size_t i = 0; i < thread->departure_count; i++) {
        struct departure *departure = &thread->departures[i];
        if (departure->number == view->departure.number) {
            departure->in_ns = ++fake->now_ns;
            if (!departure->runnable_ns)
                departure->runnable_ns = fake->now_ns;
            return false;
        }
    }
    return false;
}

void __wrap_switch_record_acknowledge(struct switch_record *record, const struct slot_view *view,
                                      uint64_t tick)
{
    (void)record;
    fake_find(view->departure.tid)->acknowledged_tick = tick;
}

/* The record has a few bytes of each thread's stack. */
void __wrap_switch_record_want_python(const struct switch_record *record, uint32_t slot,
                                      uint32_t generation, const struct python_thread *thread)
{
    (void)record, (void)slot, (void)generation, (void)thread; /* the world runs no Python */
}

void __wrap_switch_record_want_stack(const struct switch_record *record, uint32_t slot,
                                     uint32_t generation, size_t bytes, bool wants_other)
{
    (void)record, (void)slot, (void)generation, (void)wants_other;
    assert_true(bytes > 0);
}

/* Finds the last tick that a departure spanned, unless that was acknowledged. */
static bool find_tick(const struct fake_thread *thread, const struct departure *departure,
                      struct past_departure *past)
{
    past->last_tick = ticks_until(&fake->recorded_ticks, departure->in_ns - 1);
    return past->last_tick > ticks_until(&fake->recorded_ticks, departure->out_ns - 1) &&
           past->last_tick > thread->acknowledged_tick;
}

/* The thread whose next departure ended first, if any has ended by now. */
static struct fake_thread *first_over(void)
{
    struct fake_thread *first = NULL;
    uint64_t first_ns = UINT64_MAX;
    for (size_t i = 0; i < fake->thread_count; i++) {
        struct fake_thread *thread = &fake->threads[i];
        if (thread->departures_told == thread->departure_count)
            continue;
        uint64_t in_ns = thread->departures[thread->departures_told].in_ns;
        if (in_ns && in_ns <= fake->now_ns && in_ns < first_ns) {
            first = thread;
            first_ns = in_ns;
        }
    }
    return first;
}

static int tell_ends_of_old_waits(switch_take_fn *take, void *argument)
{
    int err = 0;
    for (size_t i = 0; i < fake->thread_count && !err; i++) {
        struct fake_thread *thread = &fake->threads[i];
        if (!by_now(thread->old_wait_ends_ns))
            continue;
        const struct past_departure past = {
            .kind = SWITCH_MESSAGE_WAKE,
            .woken_process_id = thread->process->pid,
            .woken_tid = thread->tid,
            .wake = {.thread = WAKE_BY_IDLE},
            .departure = {.out_ns = thread->old_wait_ends_ns},
        };
        thread->old_wait_ends_ns = 0;
        err = take(argument, &past);
    }
    return err;
}

int __wrap_switch_record_drain(struct switch_record *record, switch_take_fn *take, void *argument)
{
    static unsigned char stack[64];
    struct fake_thread *thread;
    int count = 0, err = tell_ends_of_old_waits(take, argument);
    (void)record;
    memset(stack, FAKE_STACK_BYTE, sizeof stack);
    while (!err && !fake->holds_messages && (thread = first_over())) {
        const struct departure *departure = &thread->departures[thread->departures_told++];
        struct past_departure past = {
            .departure = *departure, .stack = stack, .stack_bytes = sizeof stack};
        if (!thread->process->is_recorded || !find_tick(thread, departure, &past))
            continue;
        err = take(argument, &past);
        count++;
    }
    return err ? err : count;
}

bool __wrap_switch_record_read_futex(const struct switch_record *record,
                                     const struct slot_view *view,
                                     unsigned char ret_futex[SWITCH_FUTEX_BYTES],
                                     bool *ret_has_before)
{
    (void)record, (void)view, (void)ret_futex, (void)ret_has_before;
    return false;
}

int __wrap_switch_record_sample_program(const struct switch_record *record)
{
    (void)record;
    return -1;
}

bool __wrap_switch_record_has_hidden_returns(const struct switch_record *record)
{
    (void)record;
    return fake->hidden_returns > 0;
}

struct switch_counters __wrap_switch_record_counters(const struct switch_record *record)
{
    (void)record;
    return (struct switch_counters){.lost_messages = fake->messages_lost,
                                    .lost_wakes = fake->wakes_lost,
                                    .hidden_returns = fake->hidden_returns,
                                    .without_slot = fake->without_slot,
                                    .without_memory = fake->without_memory};
}
