/* Where a thread was at a tick, by a record of switches that the test plays. The thread is the
 * test's own, with a buffer for its stack. */
#include "unit.h"
#include "observe/off_cpu.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#define STACK_BYTES 512u
#define TICK 7u
#define TICK_NS 1000000u
#define PC 0x401000u
#define THREAD 3u
#define ALWAYS 1000

static _Alignas(4096) unsigned char sleepers_stack[4096];

/* What the record says, and what it was told. */
static struct {
    int read_error;
    struct departure departure;
    int proofs_left; /* so often it says that the thread has not moved */
    uint64_t acknowledged_tick;
    unsigned acknowledged;
    struct past_departure past[4];
    size_t past_count, past_taken;
} record;

int __wrap_switch_record_read(struct switch_record *own, pid_t tid, struct slot_view *ret_view);
bool __wrap_switch_record_is_unmoved(const struct switch_record *own, const struct slot_view *view);
void __wrap_switch_record_acknowledge(struct switch_record *own, const struct slot_view *view,
                                      uint64_t tick);
int __wrap_switch_record_drain(struct switch_record *own, switch_take_fn *take, void *argument);

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

void __wrap_switch_record_acknowledge(struct switch_record *own, const struct slot_view *view,
                                      uint64_t tick)
{
    (void)own, (void)view;
    record.acknowledged++;
    record.acknowledged_tick = tick;
}

int __wrap_switch_record_drain(struct switch_record *own, switch_take_fn *take, void *argument)
{
    int count = 0;
    (void)own;
    while (record.past_taken < record.past_count) {
        int err = take(argument, &record.past[record.past_taken++]);
        if (err)
            return err;
        count++;
    }
    return count;
}

struct world {
    struct stack_areas areas;
    struct watches watches;
    struct snapshots *snapshots;
    struct snapshot snapshot;
    struct observation seen;
    struct subject subject;
    struct source *source;
};

static void set_registers(struct registers *registers)
{
    *registers = (struct registers){.interrupted_call = -1};
    registers_set(registers, architecture.pc, PC);
    registers_set(registers, architecture.sp, (uintptr_t)sleepers_stack + 64);
    registers->call_arguments[0] = 5;
}

/* It went to sleep before the tick, and sleeps. */
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
        .wants_call = true,
    };
    assert_true(world->subject.proc_fd >= 0);
    assert_true(snapshot_make_room(&world->snapshot, STACK_BYTES, &none));
    assert_int_equal(snapshots_new(&world->snapshots), 0);
    const struct off_cpu_options options = {NULL, &world->watches, world->snapshots};
    assert_int_equal(off_cpu_source_new(&options, &world->source), 0);
    for (size_t i = 0; i < sizeof sleepers_stack; i++)
        sleepers_stack[i] = (unsigned char)(i * 7);
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    world->source->free(world->source);
    snapshots_free(world->snapshots);
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
    return world->source->observe(world->source, &world->subject, &world->seen);
}

static void next_tick(struct world *world)
{
    world->subject.tick++;
    world->subject.tick_ns += TICK_NS;
}

/* ---- What is still there ---- */

static void test_a_sleeper_is_copied(void **state)
{
    struct world *world = *state;
    const struct stack_copy *stack = &world->snapshot.stack;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    assert_int_equal(world->seen.evidence, EVIDENCE_ASLEEP);
    assert_int_equal(world->seen.state, THREAD_SLEEPING);
    assert_int_equal(world->seen.syscall_number, SYS_read);
    assert_int_equal(world->seen.departed_ns, TICK_NS - 1000);
    assert_int_equal(world->seen.woken_ns, 0);
    assert_false(world->seen.is_over);
    assert_true(world->seen.has_call);
    assert_int_equal(world->seen.call.kind, CALL_FILE);
    assert_true(world->seen.now.at_ns > 0);
    assert_int_equal(registers_pc(&world->snapshot.registers), PC);
    assert_int_equal(world->snapshot.registers.known, record.departure.registers.known);
    assert_int_equal(stack->address, (uintptr_t)sleepers_stack + 64);
    assert_int_equal(stack->bytes, STACK_BYTES);
    assert_memory_equal(stack->memory, sleepers_stack + 64, STACK_BYTES);
    assert_int_equal(record.acknowledged, 1);
    assert_int_equal(record.acknowledged_tick, TICK);
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

/* An id that another process's thread has got, or had. */
static void test_another_process(void **state)
{
    struct world *world = *state;
    record.departure.process_id++;
    assert_int_equal(observe(world), OUTCOME_REFUSED);
}

/* Before its first departure it may have run, or slept since before it was followed. */
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
    assert_int_equal(world->seen.departed_ns, 0);
    assert_true(world->seen.now.at_ns > 0);
    record.departure.in_ns = TICK_NS; /* at that very moment */
    assert_int_equal(observe(world), OUTCOME_RUNNING);
    assert_int_equal(record.acknowledged, 0);
}

/* If it was off its CPU at the tick, a message tells of that. */
static void test_moved_since_the_tick(void **state)
{
    struct world *world = *state;
    record.departure.in_ns = TICK_NS + 1;
    assert_int_equal(observe(world), OUTCOME_PENDING);
    record.departure.in_ns = 0;
    record.departure.out_ns = TICK_NS + 1;
    assert_int_equal(observe(world), OUTCOME_PENDING);
    assert_int_equal(world->seen.departed_ns, 0);
    assert_int_equal(record.acknowledged, 0);
}

static void test_unmoved_until_it_is_woken(void **state)
{
    struct world *world = *state;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    next_tick(world);
    world->subject.call = world->seen.call;
    assert_int_equal(observe(world), OUTCOME_UNMOVED);
    assert_int_equal(world->seen.evidence, EVIDENCE_UNMOVED);
    assert_int_equal(world->seen.state, THREAD_SLEEPING);
    assert_int_equal(world->seen.departed_ns, record.departure.out_ns);
    assert_int_equal(record.acknowledged_tick, TICK + 1);
    assert_true(world->seen.has_call);
    record.departure.runnable_ns = world->subject.tick_ns + 1; /* after the tick */
    assert_int_equal(observe(world), OUTCOME_UNMOVED);
    assert_int_equal(world->seen.woken_ns, record.departure.runnable_ns);
    record.departure.runnable_ns = world->subject.tick_ns; /* at the tick */
    assert_int_equal(observe(world), OUTCOME_WOKEN);
    assert_int_equal(world->seen.evidence, EVIDENCE_WOKEN);
    assert_int_equal(world->seen.state, THREAD_RUNNABLE);
    assert_false(world->seen.has_call);
    assert_int_equal(world->seen.woken_ns, record.departure.runnable_ns);
    assert_int_equal(record.acknowledged, 1);
}

/* The account of the kernel is as it was then: no file is read. */
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

/* What it waits for was read, but it may have been of another wait. */
static void test_moved_while_the_call_is_read_again(void **state)
{
    struct world *world = *state;
    assert_int_equal(observe(world), OUTCOME_OBSERVED);
    next_tick(world);
    world->subject.call = world->seen.call;
    record.proofs_left = 0;
    assert_int_equal(observe(world), OUTCOME_UNMOVED);
    assert_false(world->seen.has_call);
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

/* It ran at a tick in between: what is found after that is a sleep of its own, though it may begin
 * at the same moment, by a clock that is coarse. */
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
    assert_int_equal(world->seen.syscall_number, -1);
    assert_false(world->seen.has_call);
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
    assert_true(world->seen.is_over);
    assert_false(world->seen.has_call);
    assert_int_equal(world->seen.syscall_number, SYS_read);
    assert_memory_equal(world->snapshot.stack.memory, sleepers_stack + 64, STACK_BYTES);
    assert_int_equal(record.acknowledged_tick, TICK);
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

/* ---- What is over ---- */

static struct past_departure *add_past(enum thread_state thread_state)
{
    struct past_departure *past = &record.past[record.past_count++];
    *past = (struct past_departure){
        .departure = record.departure,
        .first_tick = TICK - 2,
        .last_tick = TICK,
        .stack = sleepers_stack + 64,
        .stack_bytes = 100,
    };
    past->departure.state = thread_state;
    past->departure.runnable_ns = TICK_NS + 10;
    past->departure.in_ns = TICK_NS + 20;
    return past;
}

static bool collect(struct world *world)
{
    enum outcome outcome = OUTCOME_GONE;
    bool has_one = world->source->collect(world->source, &world->seen, &outcome);
    assert_true(!has_one || outcome == OUTCOME_OBSERVED);
    return has_one;
}

static void give_back(struct world *world)
{
    snapshots_give(world->snapshots, world->seen.snapshot, false);
}

static void test_collects_a_departure(void **state)
{
    struct world *world = *state;
    add_past(THREAD_SLEEPING);
    assert_true(collect(world));
    const struct snapshot *snapshot = world->seen.snapshot;
    assert_int_equal(world->seen.process_id, getpid());
    assert_int_equal(world->seen.tid, gettid());
    assert_int_equal(world->seen.tick, TICK);
    assert_int_equal(world->seen.evidence, EVIDENCE_ASLEEP);
    assert_int_equal(world->seen.state, THREAD_SLEEPING);
    assert_int_equal(world->seen.syscall_number, SYS_read);
    assert_int_equal(world->seen.departed_ns, TICK_NS - 1000);
    assert_int_equal(world->seen.woken_ns, TICK_NS + 10);
    assert_int_equal(world->seen.returned_ns, TICK_NS + 20);
    assert_true(world->seen.is_over);
    assert_false(world->seen.has_call);
    assert_int_equal(world->seen.call.kind, CALL_FILE);
    assert_int_equal(world->seen.now.at_ns, 0);
    assert_null(world->seen.program);
    assert_int_equal(registers_pc(&snapshot->registers), PC);
    assert_int_equal(snapshot->stack.address, (uintptr_t)sleepers_stack + 64);
    assert_int_equal(snapshot->stack.bytes, 100);
    assert_int_equal(snapshot->stack.end, (uintptr_t)sleepers_stack + 164);
    assert_false(snapshot->stack.end_is_known);
    assert_memory_equal(snapshot->stack.memory, sleepers_stack + 64, 100);
    give_back(world);
    assert_false(collect(world));
    assert_int_equal(off_cpu_lost(world->source), 0);
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

static void test_collects_the_memory_of_a_futex(void **state)
{
    struct world *world = *state;
    uint32_t words[FUTEX_WORDS];
    for (unsigned i = 0; i < FUTEX_WORDS; i++)
        words[i] = i * 3;
    wait_for_futex(add_past(THREAD_SLEEPING), words, true);
    wait_for_futex(add_past(THREAD_SLEEPING), words, false);
    wait_for_futex(add_past(THREAD_SLEEPING), NULL, false);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(collect(world));
        assert_int_equal(world->seen.call.kind, CALL_FUTEX);
        assert_true(world->seen.has_call);
        assert_int_equal(world->seen.call_memory.words[FUTEX_WORDS_BEFORE],
                         words[FUTEX_WORDS_BEFORE]);
        assert_int_equal(call_futex_words_before(&world->seen.call, &world->seen.call_memory),
                         i ? 0 : FUTEX_WORDS_BEFORE);
        give_back(world);
    }
    /* Without the memory it is not known who holds the lock. */
    assert_true(collect(world));
    assert_false(world->seen.has_call);
    give_back(world);
}

static void test_collects_them_one_by_one(void **state)
{
    struct world *world = *state;
    add_past(THREAD_UNINTERRUPTIBLE);
    add_past(THREAD_RUNNABLE)->departure.syscall_number = -1;
    assert_true(collect(world));
    assert_int_equal(record.past_taken, 1);
    assert_int_equal(world->seen.evidence, EVIDENCE_ASLEEP);
    assert_int_equal(world->seen.state, THREAD_UNINTERRUPTIBLE);
    give_back(world);
    assert_true(collect(world));
    assert_int_equal(world->seen.evidence, EVIDENCE_WAITING);
    assert_int_equal(world->seen.state, THREAD_RUNNABLE);
    assert_int_equal(world->seen.syscall_number, -1);
    give_back(world);
    assert_false(collect(world));
}

/* Takes all snapshots there are left, and gives them back. */
static size_t count_snapshots(struct world *world)
{
    static const struct stack_place none = {0};
    static struct snapshot *all[SNAPSHOTS_MAX];
    size_t count = 0;
    while (count < SNAPSHOTS_MAX && (all[count] = snapshots_take(world->snapshots, 64, &none)))
        count++;
    for (size_t i = 0; i < count; i++)
        snapshots_give(world->snapshots, all[i], false);
    return count;
}

static void test_without_registers_it_is_lost(void **state)
{
    struct world *world = *state;
    add_past(THREAD_SLEEPING)->departure.registers.known = 0;
    add_past(THREAD_SLEEPING);
    assert_true(collect(world)); /* the next one */
    assert_int_equal(off_cpu_lost(world->source), 1);
    assert_int_equal(count_snapshots(world), SNAPSHOTS_MAX - 1);
    give_back(world);
    assert_int_equal(count_snapshots(world), SNAPSHOTS_MAX);
}

static void test_without_a_snapshot_it_is_lost(void **state)
{
    static const struct stack_place none = {0};
    static struct snapshot *all[SNAPSHOTS_MAX];
    struct world *world = *state;
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
        assert_non_null(all[i] = snapshots_take(world->snapshots, 64, &none));
    add_past(THREAD_SLEEPING);
    add_past(THREAD_SLEEPING);
    assert_false(collect(world));
    assert_int_equal(off_cpu_lost(world->source), 2);
    for (size_t i = 0; i < SNAPSHOTS_MAX; i++)
        snapshots_give(world->snapshots, all[i], false);
}

/* What is not in the message is read now, up to the end of the stack. */
static void test_completes_a_stack(void **state)
{
    struct world *world = *state;
    struct stack_areas areas = {0};
    add_past(THREAD_SLEEPING);
    off_cpu_make_room(world->source, 2 * SWITCH_STACK_BYTES_MAX);
    assert_true(collect(world));
    const struct stack_copy *stack = &world->seen.snapshot->stack;
    assert_int_equal(stack->capacity, 2 * SWITCH_STACK_BYTES_MAX);
    off_cpu_complete_stack(&world->seen, &areas); /* without knowing where it ends */
    assert_int_equal(stack->bytes, 100);
    int maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    assert_int_equal(stack_areas_read(&areas, maps_fd), 0);
    close(maps_fd);
    sleepers_stack[64] ^= 1;  /* has changed since; the copy has it as it was */
    sleepers_stack[164] ^= 1; /* was not copied */
    off_cpu_complete_stack(&world->seen, &areas);
    assert_true(stack->end_is_known);
    assert_true(stack->bytes >= sizeof sleepers_stack - 64);
    assert_int_equal(stack->memory[0], sleepers_stack[64] ^ 1);
    assert_memory_equal(stack->memory + 1, sleepers_stack + 65, sizeof sleepers_stack - 65);
    stack_areas_free(&areas);
    give_back(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_sleeper_is_copied, set_up, tear_down),
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
        cmocka_unit_test_setup_teardown(test_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_collects_a_departure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_collects_the_memory_of_a_futex, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_collects_them_one_by_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_registers_it_is_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_a_snapshot_it_is_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_completes_a_stack, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
