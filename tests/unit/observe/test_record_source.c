/* Where a thread was at a tick, by a record of switches that the test fakes. The thread is the
 * test's own, with a buffer as its stack. */
#include "unit.h"
#include "base/clock.h"
#include "observe/record_source.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#define STACK_BYTES 512u
#define TICK 7u
#define TICK_NS 1000000u
#define PC 0x401000u
#define THREAD 3u
#define ALWAYS 1000

static _Alignas(4096) unsigned char sleepers_stack[4096];

/* The record's answers, and the requests to it. */
static struct {
    int read_error;
    struct departure departure;
    int proofs_left; /* how often it still says that the thread has not moved */
    bool has_hidden_returns;
    uint64_t acknowledged_tick;
    unsigned acknowledged;
    size_t wanted_bytes;
    const unsigned char *futex; /* NULL: none is known */
} record;

int __wrap_switch_record_read(struct switch_record *own, pid_t tid, struct slot_view *ret_view);
bool __wrap_switch_record_is_unmoved(const struct switch_record *own, const struct slot_view *view);
bool __wrap_switch_record_has_hidden_returns(const struct switch_record *own);
void __wrap_switch_record_acknowledge(struct switch_record *own, const struct slot_view *view,
                                      uint64_t tick);
void __wrap_switch_record_want_python(const struct switch_record *own, uint32_t slot,
                                      uint32_t generation, const struct python_thread *thread);
void __wrap_switch_record_want_stack(const struct switch_record *own, uint32_t slot,
                                     uint32_t generation, size_t bytes, bool wants_other);

bool __wrap_switch_record_read_futex(const struct switch_record *own, const struct slot_view *view,
                                     unsigned char ret_futex[SWITCH_FUTEX_BYTES],
                                     bool *ret_has_before);

bool __wrap_switch_record_read_futex(const struct switch_record *own, const struct slot_view *view,
                                     unsigned char ret_futex[SWITCH_FUTEX_BYTES],
                                     bool *ret_has_before)
{
    (void)own, (void)view;
    if (record.futex)
        memcpy(ret_futex, record.futex, SWITCH_FUTEX_BYTES);
    *ret_has_before = true;
    return record.futex;
}

int __wrap_switch_record_read(struct switch_record *own, pid_t tid, struct slot_view *ret_view)
{
    (void)own;
    assert_int_equal(tid, gettid());
    if (record.read_error)
        return record.read_error;
    *ret_view = (struct slot_view){.departure = record.departure};
    return 0;
}

bool __wrap_switch_record_is_unmoved(const struct switch_record *own, const struct slot_view *view)
{
    (void)own;
    assert_int_equal(view->departure.out_ns, record.departure.out_ns);
    return record.proofs_left-- > 0;
}

bool __wrap_switch_record_has_hidden_returns(const struct switch_record *own)
{
    (void)own;
    return record.has_hidden_returns;
}

void __wrap_switch_record_acknowledge(struct switch_record *own, const struct slot_view *view,
                                      uint64_t tick)
{
    (void)own, (void)view;
    record.acknowledged++;
    record.acknowledged_tick = tick;
}

void __wrap_switch_record_want_python(const struct switch_record *own, uint32_t slot,
                                      uint32_t generation, const struct python_thread *thread)
{
    (void)own, (void)slot, (void)generation;
    assert_null(thread->layout);
}

void __wrap_switch_record_want_stack(const struct switch_record *own, uint32_t slot,
                                     uint32_t generation, size_t bytes, bool wants_other)
{
    (void)own, (void)slot, (void)generation;
    assert_true(wants_other);
    record.wanted_bytes = bytes;
}

struct world {
    struct stack_areas areas;
    struct watches watches;
    struct snapshot snapshot;
    struct observation seen;
    struct subject subject;
    struct record_source source;
};

static void set_registers(struct registers *registers)
{
    *registers = (struct registers){.interrupted_call = -1};
    registers_set(registers, architecture.pc, PC);
    registers_set(registers, architecture.sp, (uintptr_t)sleepers_stack + 64);
    registers->call_arguments[0] = 5;
}

/* The thread fell asleep before the tick, and still sleeps. */
static int set_up(void **state)
{
    static const struct stack_place none = {0};
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    *state = world;
    memset(&record, 0, sizeof record);
    record.proofs_left = ALWAYS;
    record.departure = (struct departure){
        .tid = gettid(),
        .process_id = getpid(),
        .number = 9,
        .out_ns = TICK_NS - 1000,
        .state = THREAD_SLEEPING,
        .syscall_number = SYS_read,
    };
    set_registers(&record.departure.registers);
    world->subject = (struct subject){
        .thread = THREAD,
        .process_id = getpid(),
        .tid = gettid(),
        .tick = TICK,
        .tick_ns = TICK_NS,
        .proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC),
        .stack_areas = &world->areas,
        .stack_limit = STACK_BYTES,
        .leaves_stack = true,
    };
    assert_true(world->subject.proc_fd >= 0);
    assert_true(snapshot_make_room(&world->snapshot, STACK_BYTES, &none));
    world->source = (struct record_source){.watches = &world->watches};
    for (size_t i = 0; i < sizeof sleepers_stack; i++)
        sleepers_stack[i] = (unsigned char)(i * 7);
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    snapshot_clear(&world->snapshot);
    watches_free(&world->watches);
    close(world->subject.proc_fd);
    free(world);
    return 0;
}

static enum outcome observe(struct world *world)
{
    world->seen = (struct observation){.snapshot = &world->snapshot};
    record.acknowledged = 0;
    return record_source_observe(&world->source, &world->subject, &world->seen);
}

static void next_tick(struct world *world)
{
    world->subject.tick++;
    world->subject.tick_ns += TICK_NS;
}

/* ---- Still off its CPU ---- */

static void test_a_sleeper_is_copied(void **state)
{
    struct world *world = *state;
    const struct stack_copy *stack = &world->snapshot.stack;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    assert_int_equal(world->seen.evidence, EVIDENCE_ASLEEP);
    assert_int_equal(world->seen.state, THREAD_SLEEPING);
    assert_int_equal(world->seen.wait.syscall_number, SYS_read);
    assert_int_equal(world->seen.record.departed_ns, TICK_NS - 1000);
    assert_int_equal(world->seen.record.woken_ns, 0);
    assert_false(world->seen.asleep.is_over);
    assert_true(world->seen.wait.has_call);
    assert_int_equal(world->seen.wait.call.kind, CALL_FILE);
    assert_true(world->seen.now.at_ns > 0);
    assert_int_equal(registers_pc(&world->snapshot.registers), PC);
    assert_int_equal(world->snapshot.registers.known, record.departure.registers.known);
    assert_int_equal(stack->address, (uintptr_t)sleepers_stack + 64);
    assert_int_equal(stack->bytes, STACK_BYTES);
    assert_memory_equal(stack->memory, sleepers_stack + 64, STACK_BYTES);
    assert_int_equal(record.acknowledged, 1);
    assert_int_equal(record.acknowledged_tick, TICK);
    assert_int_equal(record.wanted_bytes, SWITCH_STACK_BYTES_DEFAULT);
}

/* A lock may have had several owners meanwhile: the copy nearer to the tick is more likely right.
 */
static void test_a_futex_is_known_at_two_moments(void **state)
{
    struct world *world = *state;
    uint32_t words[FUTEX_WORDS], *now = (uint32_t *)(sleepers_stack + 512);
    for (unsigned i = 0; i < FUTEX_WORDS; i++)
        words[i] = i * 3;
    record.departure.syscall_number = SYS_futex;
    record.departure.registers.call_arguments[0] = (uintptr_t)now;
    record.departure.registers.call_arguments[1] = FUTEX_WAIT;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    const struct wait_seen *seen = &world->seen.wait;
    assert_int_equal(seen->memory.words[FUTEX_WORDS_BEFORE], *now);
    assert_false(seen->has_other || seen->is_left);
    record.departure.out_ns++; /* 1 us before the tick, which is long ago */
    record.futex = (const unsigned char *)words;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    assert_true(seen->has_call && seen->has_other && seen->is_left);
    assert_memory_equal(seen->memory.words, words, sizeof words);
    assert_int_equal(world->seen.snapshot->other_futex.words[FUTEX_WORDS_BEFORE], *now);
    world->subject.tick_ns = monotonic_ns();
    record.departure.out_ns = world->subject.tick_ns - 1000000000u;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    assert_true(seen->has_call && seen->has_other && !seen->is_left);
    assert_int_equal(seen->memory.words[FUTEX_WORDS_BEFORE], *now);
    assert_memory_equal(world->seen.snapshot->other_futex.words, words, sizeof words);
}

/* The thread moves while its futex is read: that copy may belong to another wait, but the record's
 * does not. */
static void test_a_futex_of_a_wait_that_ends_meanwhile(void **state)
{
    struct world *world = *state;
    uint32_t words[FUTEX_WORDS] = {7}, *now = (uint32_t *)(sleepers_stack + 512);
    record.departure.syscall_number = SYS_futex;
    record.departure.registers.call_arguments[0] = (uintptr_t)now;
    record.departure.registers.call_arguments[1] = FUTEX_WAIT;
    record.proofs_left = 1; /* of its stack */
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    assert_true(world->seen.asleep.is_over);
    assert_false(world->seen.wait.has_call);
    record.departure.out_ns++;
    record.futex = (const unsigned char *)words;
    record.proofs_left = 1;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    assert_true(world->seen.asleep.is_over && world->seen.wait.has_call);
    assert_false(world->seen.wait.has_other);
    assert_memory_equal(world->seen.wait.memory.words, words, sizeof words);
}

static void test_what_the_record_does_not_know_is_refused(void **state)
{
    struct world *world = *state;
    record.read_error = -ENOENT;
    assert_int_equal(observe(world), OUTCOME_REFUSED);
    record.read_error = -EAGAIN;
    assert_int_equal(observe(world), OUTCOME_REFUSED);
    record.read_error = 0;
    record.departure.registers.known = 0;
    assert_int_equal(observe(world), OUTCOME_REFUSED);
    assert_int_equal(record.acknowledged, 0);
}

/* The id belongs, or belonged, to a thread of another process. */
static void test_another_process(void **state)
{
    struct world *world = *state;
    record.departure.process_id++;
    assert_int_equal(observe(world), OUTCOME_REFUSED);
}

/* Before its first departure the thread may have run, or slept since before it was followed. */
static void test_a_first_departure_says_nothing_of_before(void **state)
{
    struct world *world = *state;
    record.departure.number = 1;
    record.departure.out_ns = TICK_NS + 1;
    assert_int_equal(observe(world), OUTCOME_REFUSED);
    record.departure.in_ns = TICK_NS + 2;
    assert_int_equal(observe(world), OUTCOME_REFUSED);
    record.departure.in_ns = 0;
    record.departure.out_ns = TICK_NS;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
}

static void test_running_at_the_tick(void **state)
{
    struct world *world = *state;
    record.departure.in_ns = TICK_NS - 1;
    assert_int_equal(observe(world), OUTCOME_RUNNING);
    assert_int_equal(world->seen.record.departed_ns, 0);
    assert_true(world->seen.now.at_ns > 0);
    record.departure.in_ns = TICK_NS; /* at that very moment */
    assert_int_equal(observe(world), OUTCOME_RUNNING);
    assert_int_equal(record.acknowledged, 0);
}

/* If the thread was off its CPU at the tick, a message reports that. */
static void test_moved_since_the_tick(void **state)
{
    struct world *world = *state;
    record.departure.in_ns = TICK_NS + 1;
    assert_int_equal(observe(world), OUTCOME_PENDING);
    record.departure.in_ns = 0;
    record.departure.out_ns = TICK_NS + 1;
    assert_int_equal(observe(world), OUTCOME_PENDING);
    assert_int_equal(world->seen.record.departed_ns, 0);
    assert_int_equal(record.acknowledged, 0);
}

static void test_unmoved_until_it_is_woken(void **state)
{
    struct world *world = *state;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    next_tick(world);
    world->subject.call = world->seen.wait.call;
    assert_int_equal(observe(world), OUTCOME_UNMOVED);
    assert_int_equal(world->seen.evidence, EVIDENCE_UNMOVED);
    assert_int_equal(world->seen.state, THREAD_SLEEPING);
    assert_int_equal(world->seen.record.departed_ns, record.departure.out_ns);
    assert_int_equal(record.acknowledged_tick, TICK + 1);
    assert_true(world->seen.wait.has_call);
    record.departure.runnable_ns = world->subject.tick_ns + 1; /* after the tick */
    assert_int_equal(observe(world), OUTCOME_UNMOVED);
    assert_int_equal(world->seen.record.woken_ns, record.departure.runnable_ns);
    record.departure.runnable_ns = world->subject.tick_ns; /* at the tick */
    assert_int_equal(observe(world), OUTCOME_WOKEN);
    assert_int_equal(world->seen.evidence, EVIDENCE_WOKEN);
    assert_int_equal(world->seen.state, THREAD_RUNNABLE);
    assert_false(world->seen.wait.has_call);
    assert_int_equal(world->seen.record.woken_ns, record.departure.runnable_ns);
    assert_int_equal(record.acknowledged, 1);
}

/* The kernel's account has not changed since the copy, so no file is read. */
static void test_unmoved_has_the_account_of_its_copy(void **state)
{
    struct world *world = *state;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    const struct reading first = world->seen.now;
    next_tick(world);
    int proc_fd = world->subject.proc_fd;
    world->subject.proc_fd = -1;
    assert_int_equal(observe(world), OUTCOME_UNMOVED);
    world->subject.proc_fd = proc_fd;
    assert_true(world->seen.now.at_ns >= first.at_ns);
    assert_int_equal(world->seen.now.has_activity, first.has_activity);
    assert_memory_equal(&world->seen.now.activity, &first.activity, sizeof first.activity);
}

/* The futex was read, but it may belong to another wait. */
static void test_moved_while_the_call_is_read_again(void **state)
{
    struct world *world = *state;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    next_tick(world);
    world->subject.call = world->seen.wait.call;
    record.proofs_left = 0;
    assert_int_equal(observe(world), OUTCOME_UNMOVED);
    assert_false(world->seen.wait.has_call);
}

static void test_another_departure_is_copied_anew(void **state)
{
    struct world *world = *state;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    next_tick(world);
    record.departure.number++;
    record.departure.out_ns += 1000;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    next_tick(world);
    world->subject.wants_copy = true;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    world->subject.wants_copy = false;
    assert_int_equal(observe(world), OUTCOME_UNMOVED);
}

/* The thread ran at a tick in between: a sleep that is found afterwards is another one, even if a
 * coarse clock gives it the same begin. */
static void test_a_run_ends_a_sleep(void **state)
{
    struct world *world = *state;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    record.departure.in_ns = TICK_NS + 1000;
    next_tick(world);
    assert_int_equal(observe(world), OUTCOME_RUNNING);
    record.departure.in_ns = 0;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
}

static void test_one_that_was_preempted_waits(void **state)
{
    struct world *world = *state;
    record.departure.state = THREAD_RUNNABLE;
    record.departure.runnable_ns = record.departure.out_ns;
    record.departure.syscall_number = -1;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    assert_int_equal(world->seen.evidence, EVIDENCE_WAITING);
    assert_int_equal(world->seen.state, THREAD_RUNNABLE);
    assert_int_equal(world->seen.wait.syscall_number, -1);
    assert_false(world->seen.wait.has_call);
}

static void test_moved_before_the_copy_is_proven(void **state)
{
    struct world *world = *state;
    record.proofs_left = 0;
    assert_int_equal(observe(world), OUTCOME_PENDING);
    assert_int_equal(record.acknowledged, 0);
    record.proofs_left = ALWAYS;
    assert_int_equal(observe(world), OUTCOME_OBSERVED); /* it was not seen there before */
}

static void test_moved_while_details_are_read(void **state)
{
    struct world *world = *state;
    record.proofs_left = 1;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    assert_true(world->seen.asleep.is_over);
    assert_false(world->seen.wait.has_call);
    assert_int_equal(world->seen.wait.syscall_number, SYS_read);
    assert_memory_equal(world->snapshot.stack.memory, sleepers_stack + 64, STACK_BYTES);
    assert_int_equal(record.acknowledged_tick, TICK);
}

/* ---- Returns that are hidden from the record ---- */

/* Sets how often the thread has got a CPU in the kernel's account. */
static void set_switches(struct world *world, unsigned switches)
{
    struct watch *watch = watches_get(&world->watches, THREAD);
    char line[32];
    snprintf(line, sizeof line, "7000 300 %u\n", switches);
    thread_file_close(&watch->schedstat);
    watch->schedstat.fd_plus_1 = file_of_text(line) + 1;
    world->watches.keep_fds_below = INT_MAX;
}

/* The thread may run while its stack is copied. */
static void test_a_return_that_is_hidden_before_the_copy(void **state)
{
    struct world *world = *state;
    record.departure.switches = 12;
    set_switches(world, 13);
    assert_int_equal(observe(world), OUTCOME_REFUSED);
    assert_int_equal(world->seen.record.departed_ns, 0);
    assert_int_equal(record.acknowledged, 0);
    set_switches(world, 12);
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    assert_int_equal(record.acknowledged, 1);
}

static void test_a_record_that_does_not_count(void **state)
{
    struct world *world = *state;
    set_switches(world, 13);
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
}

/* A kernel that only counts in `status` counts something else there. */
static void test_an_account_of_how_often_it_left(void **state)
{
    struct world *world = *state;
    record.departure.switches = 12;
    thread_file_close(&watches_get(&world->watches, THREAD)->schedstat);
    watches_get(&world->watches, THREAD)->schedstat.fd_plus_1 = file_of_text("0 0 0\n") + 1;
    world->watches.keep_fds_below = INT_MAX;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    assert_true(world->seen.now.activity.counts_ends);
}

/* The account is only read again if the kernel is known to hide returns, because that is costly. */
static void test_a_return_that_is_hidden_after_the_copy(void **state)
{
    struct world *world = *state;
    record.departure.switches = 12;
    set_switches(world, 12);
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    next_tick(world);
    set_switches(world, 13);
    assert_int_equal(observe(world), OUTCOME_UNMOVED);
    record.has_hidden_returns = true;
    assert_int_equal(observe(world), OUTCOME_REFUSED);
    assert_int_equal(world->seen.record.departed_ns, 0);
    assert_int_equal(record.acknowledged, 0);
    set_switches(world, 12);
    assert_int_equal(observe(world), OUTCOME_UNMOVED);
}

static void test_a_hidden_return_is_remembered(void **state)
{
    struct world *world = *state;
    record.departure.switches = 12;
    set_switches(world, 13);
    assert_int_equal(observe(world), OUTCOME_REFUSED);
    record.departure.switches = 13;
    record.departure.out_ns++;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    set_switches(world, 14);
    assert_int_equal(observe(world), OUTCOME_REFUSED);
}

static void test_gone(void **state)
{
    struct world *world = *state;
    int proc_fd = world->subject.proc_fd;
    world->subject.proc_fd = open("/proc/self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(observe(world), OUTCOME_GONE);
    record.departure.in_ns = TICK_NS - 1;
    assert_int_equal(observe(world), OUTCOME_GONE);
    close(world->subject.proc_fd);
    world->subject.proc_fd = proc_fd;
}

/* ---- Completed departures ---- */

#define TOP_BYTES 100u

static struct past_departure past_of(enum thread_state thread_state)
{
    struct past_departure past = {
        .departure = record.departure,
        .last_tick = TICK,
        .stack = sleepers_stack + 64,
        .stack_bytes = TOP_BYTES,
    };
    past.departure.state = thread_state;
    past.departure.runnable_ns = TICK_NS + 10;
    past.departure.in_ns = TICK_NS + 20;
    return past;
}

static void read_past(struct world *world, const struct past_departure *past)
{
    world->seen = (struct observation){.snapshot = &world->snapshot};
    record_source_read_past(past, &world->subject, &world->seen);
}

static void test_a_departure_that_is_over(void **state)
{
    struct world *world = *state;
    const struct past_departure past = past_of(THREAD_UNINTERRUPTIBLE);
    const struct snapshot *snapshot = &world->snapshot;
    read_past(world, &past);
    assert_int_equal(world->seen.evidence, EVIDENCE_ASLEEP);
    assert_int_equal(world->seen.state, THREAD_UNINTERRUPTIBLE);
    assert_int_equal(world->seen.wait.syscall_number, SYS_read);
    assert_false(world->seen.wait.has_call);
    assert_int_equal(world->seen.wait.call.kind, CALL_FILE);
    assert_int_equal(registers_pc(&snapshot->registers), PC);
    assert_int_equal(snapshot->stack.address, (uintptr_t)sleepers_stack + 64);
    assert_int_equal(snapshot->stack.bytes, TOP_BYTES);
    assert_int_equal(snapshot->stack.end, (uintptr_t)sleepers_stack + 64 + TOP_BYTES);
    assert_false(snapshot->stack.end_is_known);
    assert_memory_equal(snapshot->stack.memory, sleepers_stack + 64, TOP_BYTES);
}

static void test_the_kernels_functions_of_a_departure(void **state)
{
    struct world *world = *state;
    struct past_departure past = past_of(THREAD_SLEEPING);
    const struct kernel_chain *chain = &world->snapshot.kernel_chain;
    past.chain_depth = 2;
    past.chain[0] = 0xffffffff81000010;
    past.chain[1] = 0xffffffff81000020;
    read_past(world, &past);
    assert_int_equal(chain->count, 2);
    assert_true(chain->addresses[0] == past.chain[0] && chain->addresses[1] == past.chain[1]);
    assert_false(chain->is_cut);
    past.chain_depth = WAKE_CHAIN_MAX;
    read_past(world, &past);
    assert_true(chain->is_cut);
    past.chain_depth = 0;
    read_past(world, &past);
    assert_int_equal(chain->count, 0);
}

static void test_a_wait_for_a_cpu_that_is_over(void **state)
{
    struct world *world = *state;
    struct past_departure past = past_of(THREAD_RUNNABLE);
    past.departure.syscall_number = -1;
    read_past(world, &past);
    assert_int_equal(world->seen.evidence, EVIDENCE_WAITING);
    assert_int_equal(world->seen.state, THREAD_RUNNABLE);
    assert_int_equal(world->seen.wait.syscall_number, -1);
    assert_false(world->seen.wait.has_call);
}

static void wait_for_futex(struct past_departure *past, const void *memory, bool has_before)
{
    struct departure *departure = &past->departure;
    departure->syscall_number = SYS_futex;
    departure->registers.call_arguments[0] = (uintptr_t)sleepers_stack + 512;
    departure->registers.call_arguments[1] = FUTEX_WAIT;
    past->futex = memory;
    past->has_futex_before = has_before;
}

static void test_the_memory_of_a_futex(void **state)
{
    struct world *world = *state;
    struct past_departure past = past_of(THREAD_SLEEPING);
    uint32_t words[FUTEX_WORDS];
    for (unsigned i = 0; i < FUTEX_WORDS; i++)
        words[i] = i * 3;
    for (unsigned has_before = 0; has_before < 2; has_before++) {
        wait_for_futex(&past, words, has_before);
        read_past(world, &past);
        assert_int_equal(world->seen.wait.call.kind, CALL_FUTEX);
        assert_true(world->seen.wait.has_call);
        assert_int_equal(world->seen.wait.memory.words[FUTEX_WORDS_BEFORE],
                         words[FUTEX_WORDS_BEFORE]);
        assert_int_equal(call_futex_words_before(&world->seen.wait.call, &world->seen.wait.memory),
                         has_before ? FUTEX_WORDS_BEFORE : 0);
    }
    /* Without the memory, the owner of the lock is not known. */
    wait_for_futex(&past, NULL, false);
    read_past(world, &past);
    assert_false(world->seen.wait.has_call);
}

static void read_areas(struct stack_areas *areas)
{
    int maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    assert_int_equal(stack_areas_read(areas, maps_fd), 0);
    close(maps_fd);
}

/* Stack that the record lacks is read now, up to the end of the stack or the limit. */
static void test_the_rest_of_a_stack_is_read_now(void **state)
{
    struct world *world = *state;
    const struct stack_copy *stack = &world->snapshot.stack;
    unsigned char top[TOP_BYTES];
    struct past_departure past = past_of(THREAD_SLEEPING);
    memcpy(top, sleepers_stack + 64, TOP_BYTES);
    top[0] ^= 1; /* has changed since */
    past.stack = top;
    read_areas(&world->areas);
    read_past(world, &past);
    assert_true(stack->end_is_known);
    assert_int_equal(stack->bytes, STACK_BYTES);
    assert_int_equal(stack->old_bytes, TOP_BYTES);
    assert_int_equal(stack->memory[0], sleepers_stack[64] ^ 1);
    assert_memory_equal(stack->memory + 1, sleepers_stack + 65, STACK_BYTES - 1);
    world->subject.stack_limit = TOP_BYTES / 2;
    read_past(world, &past);
    assert_int_equal(stack->bytes, TOP_BYTES / 2);
    stack_areas_free(&world->areas);
}

/* A stack that continues in another mapping, as in Go: the record also has the top of that. */
static void test_the_other_stack(void **state)
{
    const unsigned char elsewhere[] = "the stack that it has left";
    unsigned char top[8];
    struct world *world = *state;
    const struct stack_copy *other = &world->snapshot.other_stack;
    struct past_departure past = past_of(THREAD_SLEEPING);
    assert_int_equal(record_source_other_stack(&past, &world->subject).address, 0);
    memcpy(top, elsewhere, sizeof top);
    top[0] = 'T'; /* has changed since */
    past.other_stack = top;
    past.other_address = (uintptr_t)elsewhere;
    past.other_bytes = sizeof top;
    const struct stack_place place = record_source_other_stack(&past, &world->subject);
    assert_int_equal(place.address, (uintptr_t)elsewhere);
    assert_true(snapshot_make_room(&world->snapshot, STACK_BYTES, &place));
    read_areas(&world->areas);
    read_past(world, &past);
    assert_true(other->end_is_known);
    assert_int_equal(other->bytes, sizeof top);
    assert_memory_equal(other->memory, "The stac", sizeof top);
    past.other_bytes = 0;
    world->subject.other_stack = (struct stack_place){(uintptr_t)elsewhere + 4, 8};
    read_past(world, &past);
    assert_int_equal(other->bytes, 0); /* it may be on another one by now */
    past.has_one_stack = true;
    read_past(world, &past);
    assert_int_equal(other->bytes, 8);
    assert_memory_equal(other->memory, "stack th", 8);
    stack_areas_free(&world->areas);
}

/* The record has the frames from the departure; the thread may run other Python code by now. */
static void test_python_frames(void **state)
{
    struct world *world = *state;
    const struct switch_frame frames[] = {{0x3000, 0x3002, 0, 0},
                                          {0x2000, 0x2002, PYTHON_OWNED_BY_C, 0}};
    struct past_departure past = past_of(THREAD_SLEEPING);
    past.frames = (const unsigned char *)frames;
    past.frame_count = 2;
    past.frames_state = SWITCH_FRAMES_WHOLE;
    read_areas(&world->areas);
    read_past(world, &past);
    assert_null(world->snapshot.python); /* the thread is not known to run Python */
    world->subject.python.layout = python_layout_of(0x030c01f0);
    read_past(world, &past);
    const struct python_frames *python = world->snapshot.python;
    assert_non_null(python);
    assert_int_equal(python->state, PYTHON_FRAMES_READ);
    assert_int_equal(python->count, 1);
    assert_int_equal(python->items[0].code, 0x3000);
    assert_int_equal(python->items[0].instruction, 0x3002);
    assert_true(python->items[0].is_entry);
    assert_false(python->is_cut);
    past.frames_state = SWITCH_FRAMES_CUT;
    read_past(world, &past);
    assert_true(python->is_cut);
    past.frames_state = SWITCH_FRAMES_UNREADABLE;
    read_past(world, &past);
    assert_int_equal(python->state, PYTHON_FRAMES_UNREADABLE);
    stack_areas_free(&world->areas);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_sleeper_is_copied, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_futex_of_a_wait_that_ends_meanwhile, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_futex_is_known_at_two_moments, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_the_record_does_not_know_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_another_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_first_departure_says_nothing_of_before, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_running_at_the_tick, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_moved_since_the_tick, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unmoved_until_it_is_woken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unmoved_has_the_account_of_its_copy, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_moved_while_the_call_is_read_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_departure_is_copied_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_run_ends_a_sleep, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_that_was_preempted_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_moved_before_the_copy_is_proven, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_moved_while_details_are_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_return_that_is_hidden_before_the_copy, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_record_that_does_not_count, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_account_of_how_often_it_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_return_that_is_hidden_after_the_copy, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_hidden_return_is_remembered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_departure_that_is_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_kernels_functions_of_a_departure, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_wait_for_a_cpu_that_is_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_memory_of_a_futex, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_rest_of_a_stack_is_read_now, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_other_stack, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_python_frames, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
