/* What threads wait for: owners, and where they were. Each stack has one address, which identifies
 * it; locks have priority inheritance, so that no stack is needed to prove them. */
#include "owners_world.h"
#include "worker/wake_causes.h"

#include <linux/futex.h>

#define PERIOD_NS 10000000u
#define NOW_NS 5000000000u

static struct counted_thread *add_thread(struct world *world, uint32_t number, uint32_t process,
                                         pid_t inner_tid)
{
    struct counted_thread *thread =
        counted_threads_get(&world->threads, number, 1000 + (pid_t)number);
    const struct observation observation = {
        .thread = number, .process = process, .inner_tid = inner_tid};
    assert_non_null(thread);
    thread->name = 10 + number;
    assert_int_equal(owners_note_thread(&world->owners, &observation, thread), 0);
    return thread;
}

#define NOT_KNOWN UINT32_MAX

/* The wait of thread `number` at `address` of its code. The lock's word names `owner` at the tick,
 * and named `left` when the thread left its CPU, longer before. */
static struct held_wait wait_since(struct world *world, uint32_t number, uint64_t address,
                                   uint32_t owner, uint32_t left)
{
    struct snapshot snapshot = {0};
    struct observation observation = {
        .thread = number,
        .now.at_ns = NOW_NS,
        .record.departed_ns = NOW_NS - 1,
        .snapshot = &snapshot,
        .wait.has_other = left != NOT_KNOWN,
        .evidence = EVIDENCE_ASLEEP,
        .wait.has_call = true,
        .wait.call = {.kind = CALL_FUTEX, .address = 0x8000 + 64 * number, .is_pi = true},
    };
    struct memory_range ranges[CALL_RANGES_MAX];
    unsigned count = call_ranges(&observation.wait.call, &observation.wait.memory, ranges);
    for (unsigned i = 0; i < count; i++)
        ranges[i].got = ranges[i].bytes;
    call_note_read(&observation.wait.memory, ranges, count);
    snapshot.other_futex = observation.wait.memory;
    snapshot.other_futex.words[FUTEX_WORDS_BEFORE] = left | FUTEX_WAITERS;
    observation.wait.memory.words[FUTEX_WORDS_BEFORE] = owner | FUTEX_WAITERS;
    struct held_wait wait = {
        .thread = number, .at_ns = NOW_NS, .sample = sample_at(world, address), .ticks = 1};
    assert_int_equal(owners_read(&world->owners, &world->results, &observation,
                                 world->results.stacks.samples[wait.sample].stack, &wait),
                     0);
    assert_int_equal(wait.wait.kind, RESOURCE_MUTEX);
    assert_int_equal(wait.wait.key, 0x8000 + 64 * number);
    return wait;
}

static struct held_wait wait_of(struct world *world, uint32_t number, uint64_t address,
                                uint32_t owner)
{
    return wait_since(world, number, address, owner, NOT_KNOWN);
}

static void hold(struct world *world, const struct held_wait *wait)
{
    assert_int_equal(owners_hold(&world->owners, wait), 0);
}

static const struct counted_wait *resolved(struct world *world, size_t held)
{
    assert_true(world->owners.held[held].is_resolved);
    return &world->results.waits.rows[world->owners.held[held].wait_plus_1 - 1];
}

static uint64_t place_of(const struct world *world, const struct counted_wait *wait)
{
    const struct stack_table *stacks = &world->results.stacks;
    assert_int_not_equal(wait->owner_stack, WAIT_NO_STACK);
    return stacks->addresses[stacks->stacks[wait->owner_stack].first_address];
}

static void resolve(struct world *world)
{
    assert_int_equal(owners_resolve(&world->owners, &world->results, PERIOD_NS), 0);
}

static void test_an_owner_that_sleeps(void **state)
{
    struct world *world = *state;
    add_thread(world, 0, 0, 50);
    struct counted_thread *owner = add_thread(world, 1, 0, 51);
    owner->account.last_sample = sample_at(world, 0x111);
    owner->account.sleeps_on = true;
    struct held_wait wait = wait_of(world, 0, 0x100, 51);
    assert_int_equal(wait.owner, 1);
    assert_true(wait.has_owner);
    hold(world, &wait);
    resolve(world);
    const struct counted_wait *row = resolved(world, 0);
    assert_int_equal(row->owner_process, 0);
    assert_int_equal(row->owner_name, 11);
    assert_int_equal(row->owner_tid, 0);
    assert_int_equal(row->owner_wait_plus_1, 0);
    assert_int_equal(place_of(world, row), 0x111);
    owners_drop(&world->owners);
    assert_int_equal(world->threads.items[0].held_plus_1, 0);
    assert_int_equal(world->owners.held_count, 0);
}

/* It is where the kernel has sampled it, if that was recently. */
static void test_an_owner_that_runs(void **state)
{
    struct world *world = *state;
    add_thread(world, 0, 0, 50);
    struct counted_thread *owner = add_thread(world, 1, 0, 51);
    owner->account.awake_sample = sample_at(world, 0x222);
    owner->account.awake_at_ns = NOW_NS - PERIOD_NS;
    struct held_wait wait = wait_of(world, 0, 0x100, 51);
    hold(world, &wait);
    resolve(world);
    assert_int_equal(place_of(world, resolved(world, 0)), 0x222);
    owners_drop(&world->owners);
    owner->account.awake_at_ns = NOW_NS - PERIOD_NS - 1;
    hold(world, &wait);
    resolve(world);
    assert_int_equal(resolved(world, 0)->owner_stack, WAIT_NO_STACK);
    assert_int_equal(resolved(world, 0)->owner_name, 11);
}

/* It waited for the lock itself when it was last observed, and has it by now. */
static void test_an_owner_that_has_moved(void **state)
{
    struct world *world = *state;
    add_thread(world, 0, 0, 50);
    struct thread_account *owner = &add_thread(world, 1, 0, 51)->account;
    struct held_wait wait = wait_of(world, 0, 0x100, 51), same = wait;
    uint32_t row;
    owner->sleeps_on = true;
    owner->last_sample = sample_at(world, 0x111);
    owner->awake_sample = sample_at(world, 0x222);
    hold(world, &wait);
    resolve(world);
    assert_int_equal(place_of(world, resolved(world, 0)), 0x111);
    owners_drop(&world->owners);
    assert_int_equal(waits_add(&world->results.waits, &wait.wait, &row), 0);
    world->results.stacks.samples[owner->last_sample].labels.wait_plus_1 = row;
    hold(world, &wait);
    resolve(world);
    assert_int_equal(resolved(world, 0)->owner_stack, WAIT_NO_STACK);
    owners_drop(&world->owners);
    owner->awake_at_ns = NOW_NS;
    hold(world, &wait);
    resolve(world);
    assert_int_equal(place_of(world, resolved(world, 0)), 0x222);
    owners_drop(&world->owners);
    /* At this very tick, it waited for another lock. */
    same.thread = 1;
    same.owner = 0;
    hold(world, &wait);
    hold(world, &same);
    resolve(world);
    assert_int_equal(resolved(world, 0)->owner_stack, WAIT_NO_STACK);
}

/* Only sleeps that are not over count for deadlocks. */
static void test_the_end_of_a_sleep_is_told(void **state)
{
    struct world *world = *state;
    add_thread(world, 0, 0, 50);
    struct counted_thread *thread = &world->threads.items[0];
    const struct waker waker = {.kind = WAKER_TIMER};
    thread->account.sleeps_on = true;
    thread->account.wakers.departed_ns = 500;
    assert_int_equal(wake_end_wait(&world->results, thread, 400, &waker), 0);
    assert_false(thread->account.sleep_is_over); /* another wait has ended */
    assert_int_equal(wake_end_wait(&world->results, thread, 500, &waker), 0);
    assert_true(thread->account.sleep_is_over);
}

/* A lock may change hands several times during a wait: the last owner counts. */
static void test_an_owner_that_was_another_when_the_wait_began(void **state)
{
    struct world *world = *state;
    for (uint32_t i = 0; i < 3; i++)
        add_thread(world, i, 0, 50 + (pid_t)i);
    struct held_wait wait = wait_since(world, 0, 0x100, 52, 51);
    assert_int_equal(wait.owner, 2);
    assert_int_equal(wait.owner_read_ns, NOW_NS);
    wait = wait_since(world, 0, 0x100, 0, 51); /* released by now */
    assert_int_equal(wait.owner, 1);
    assert_int_equal(wait.owner_read_ns, NOW_NS - 1);
    wait = wait_since(world, 0, 0x100, 0, NOT_KNOWN);
    assert_int_equal(wait.owner, WAIT_NO_OWNER);
    wait = wait_since(world, 0, 0x100, 52, 0);
    assert_int_equal(wait.owner, 2);
    wait = wait_since(world, 0, 0x100, 0, 0);
    assert_int_equal(wait.owner, WAIT_NO_OWNER);
    assert_false(wait.has_owner);
}

/* In whatever order the waits are observed. */
static void test_a_chain(void **state)
{
    struct world *world = *state;
    for (uint32_t first = 0; first < 2; first++) {
        add_thread(world, 0, 0, 50);
        add_thread(world, 1, 0, 51);
        struct counted_thread *last = add_thread(world, 2, 0, 52);
        last->account.last_sample = sample_at(world, 0x333);
        last->account.sleeps_on = true;
        struct held_wait waits[] = {wait_of(world, 0, 0x100, 51), wait_of(world, 1, 0x200, 52)};
        hold(world, &waits[first]);
        hold(world, &waits[!first]);
        resolve(world);
        const struct counted_wait *row = resolved(world, first ? 1 : 0);
        assert_int_equal(row->owner_name, 11);
        assert_int_equal(place_of(world, row), 0x200);
        const struct counted_wait *next = &world->results.waits.rows[row->owner_wait_plus_1 - 1];
        assert_int_equal(next->owner_name, 12);
        assert_int_equal(place_of(world, next), 0x333);
        assert_int_equal(next->owner_wait_plus_1, 0);
        assert_int_equal(world->results.waits.count, 2);
        owners_drop(&world->owners);
    }
}

static void test_a_circle_ends(void **state)
{
    struct world *world = *state;
    add_thread(world, 0, 0, 50);
    add_thread(world, 1, 0, 51);
    struct held_wait waits[] = {wait_of(world, 0, 0x100, 51), wait_of(world, 1, 0x200, 50)};
    hold(world, &waits[0]);
    hold(world, &waits[1]);
    resolve(world);
    const struct counted_wait *row = resolved(world, 0);
    assert_int_equal(place_of(world, row), 0x200);
    const struct counted_wait *next = &world->results.waits.rows[row->owner_wait_plus_1 - 1];
    assert_int_equal(place_of(world, next), 0x100);
    assert_int_equal(next->owner_wait_plus_1, 0);
}

static void lets_sleep(struct counted_thread *thread)
{
    thread->account.sleeps_on = true;
}

static void test_where_chains_end(void **state)
{
    struct world *world = *state;
    add_thread(world, 0, 0, 50);
    add_thread(world, 1, 0, 51);
    add_thread(world, 2, 0, 52);
    lets_sleep(&world->threads.items[0]);
    lets_sleep(&world->threads.items[1]);
    struct held_wait waits[] = {wait_of(world, 0, 0x100, 51), wait_of(world, 1, 0x200, 52)};
    hold(world, &waits[0]);
    hold(world, &waits[1]);
    const struct held_wait *held = world->owners.held;
    /* A chain ends before a thread that runs or may run, and at one that sleeps. */
    assert_int_equal(owners_end_of_chain(&world->owners, &held[0]), 1);
    assert_int_equal(owners_end_of_chain(&world->owners, &held[1]), 1);
    lets_sleep(&world->threads.items[2]);
    assert_int_equal(owners_end_of_chain(&world->owners, &held[0]), 2);
    /* At the last thread of the same process. */
    world->threads.items[2].process = 1;
    assert_int_equal(owners_end_of_chain(&world->owners, &held[0]), 1);
    world->threads.items[2].process = 0;
    /* In a cycle it may end anywhere. */
    world->owners.held[1].owner = 0;
    assert_in_range(owners_end_of_chain(&world->owners, &held[0]), 0, 1);
    world->owners.held[1].owner = 2;
    world->threads.items[2].is_gone = true;
    assert_int_equal(owners_end_of_chain(&world->owners, &held[0]), 1);
}

/* One of the threads is observed in each round. */
static void test_a_circle_is_the_same_at_each_look(void **state)
{
    struct world *world = *state;
    for (uint32_t i = 0; i < 2; i++) {
        struct counted_thread *thread = add_thread(world, i, 0, 50 + (pid_t)i);
        thread->account.sleeps_on = true;
        thread->account.owner_plus_1 = 1 + !i;
        thread->account.last_sample = sample_at(world, 0x100 + i);
    }
    for (uint32_t round = 0; round < 10; round++) {
        struct held_wait wait = wait_of(world, round % 2, 0x100 + round % 2, 51 - round % 2);
        hold(world, &wait);
        resolve(world);
        const struct counted_wait *row = resolved(world, 0);
        assert_int_equal(place_of(world, row), 0x101 - round % 2);
        assert_int_equal(row->owner_wait_plus_1, 0);
        world->results.stacks.samples[wait.sample].labels.wait_plus_1 =
            world->owners.held[0].wait_plus_1;
        owners_drop(&world->owners);
    }
    assert_int_equal(world->results.waits.count, 2);
}

static void test_no_owner_is_invented(void **state)
{
    struct world *world = *state;
    add_thread(world, 0, 0, 50);
    add_thread(world, 1, 1, 51);
    /* A thread of another process, no thread, and one that is gone. */
    assert_int_equal(wait_of(world, 0, 0x100, 51).owner, WAIT_NO_OWNER);
    assert_int_equal(wait_of(world, 0, 0x100, 99).owner, WAIT_NO_OWNER);
    struct counted_thread *gone = add_thread(world, 2, 0, 52);
    assert_int_equal(wait_of(world, 0, 0x100, 52).owner, 2);
    gone->is_gone = true;
    assert_int_equal(wait_of(world, 0, 0x100, 52).owner, WAIT_NO_OWNER);
    /* The kernel has given it the lock, but it has not run yet. */
    assert_int_equal(wait_of(world, 0, 0x100, 50).owner, WAIT_NO_OWNER);
    /* Another thread has its number now. */
    add_thread(world, 2, 0, 53);
    world->threads.items[2].tid = 0;
    add_thread(world, 2, 0, 54);
    assert_int_equal(wait_of(world, 0, 0x100, 53).owner, WAIT_NO_OWNER);
    assert_int_equal(wait_of(world, 0, 0x100, 54).owner, 2);
}

static void test_very_many_threads_come_and_go(void **state)
{
    enum { ROUNDS = 20000 };
    struct world *world = *state;
    for (pid_t i = 1; i < ROUNDS; i++) {
        struct counted_thread *thread = add_thread(world, (uint32_t)i % 4, 0, i);
        thread->is_gone = i % 3 == 0;
    }
    assert_in_range(world->owners.by_id.used, 1, 2000);
    assert_int_equal(wait_of(world, 0, 0x100, ROUNDS - 1).owner, (ROUNDS - 1) % 4);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* Registers this process, which has one thread, as the program of the sampled process with this
 * number. */
static struct program *begin_program(struct world *world, uint32_t process)
{
    struct program *program = calloc(1, sizeof *program);
    assert_non_null(program);
    atomic_init(&program->references, 1);
    program->number = program->process = process;
    program->process_id = getpid();
    program->proc_fd = open("/proc/self", O_PATH | O_DIRECTORY);
    program->mem_fd = program->maps_fd = program->first_maps_fd = -1;
    assert_int_equal(peer_waits_begin(&world->owners.peers, program, program->process), 0);
    return program;
}

/* A wait for a child's end has the child's thread as its owner, while the child is known to have
 * only one. */
static void test_a_process_with_one_thread(void **state)
{
    struct world *world = *state;
    struct program *child = begin_program(world, 1);
    add_thread(world, 0, 0, 50);
    add_thread(world, 5, 1, 51);
    struct observation observation = {
        .thread = 0,
        .process = 0,
        .tid = 50,
        .inner_tid = 50,
        .program = child,
        .evidence = EVIDENCE_ASLEEP,
        .now.at_ns = NOW_NS,
        .wait.has_call = true,
        .wait.call = {.kind = CALL_PROCESS, .process = getpid(), .fd = -1},
    };
    struct held_wait wait = {0};
    assert_int_equal(owners_read(&world->owners, &world->results, &observation, 0, &wait), 0);
    assert_int_equal(wait.wait.kind, RESOURCE_PROCESS);
    assert_int_equal(wait.wait.owner_process, 1);
    assert_int_equal(wait.owner, 5);
    assert_true(wait.has_owner);
    struct counted_thread *second = add_thread(world, 6, 1, 52);
    assert_int_equal(owners_read(&world->owners, &world->results, &observation, 0, &wait), 0);
    assert_int_equal(wait.owner, WAIT_NO_OWNER);
    assert_int_equal(wait.wait.owner_process, 1);
    assert_false(wait.has_owner);
    const struct observation gone = {
        .thread = 6, .process = 1, .inner_tid = 52, .evidence = EVIDENCE_GONE};
    assert_int_equal(owners_note_thread(&world->owners, &gone, second), 0);
    assert_int_equal(owners_read(&world->owners, &world->results, &observation, 0, &wait), 0);
    assert_int_equal(wait.owner, 5);
    program_release(child);
}

/* As a C++ compiler lays out vtables: objects point behind the offset to top and the type
 * information. */
static const volatile uintptr_t vtable[] = {0, 1, 2, 3}, other_vtable[] = {0, 1, 2, 3},
                                table[] = {5, 5, 5, 5};

/* The row of a wait for a lock, if `pointer` is the pointer to the vtable in its object. */
static struct counted_wait wait_in_object(struct world *world, uint32_t stack, uint64_t pointer)
{
    struct observation observation = {
        .wait.has_call = true,
        .wait.call = {.kind = CALL_FUTEX, .address = 0x8838, .is_pi = true},
    };
    struct memory_range ranges[CALL_RANGES_MAX];
    unsigned count = call_ranges(&observation.wait.call, &observation.wait.memory, ranges);
    for (unsigned i = 0; i < count; i++)
        ranges[i].got = ranges[i].bytes;
    call_note_read(&observation.wait.memory, ranges, count);
    /* malloc's size field of the object, which begins 40 bytes before the lock. */
    const uint64_t words[] = {0x71, pointer};
    memcpy(&observation.wait.memory.words[FUTEX_WORDS_BEFORE - 12], words, sizeof words);
    struct held_wait wait = {0};
    assert_int_equal(owners_read(&world->owners, &world->results, &observation, stack, &wait), 0);
    assert_int_equal(wait.wait.kind, RESOURCE_MUTEX);
    assert_int_equal(wait.wait.key, 0x8838);
    return wait.wait;
}

static void test_a_lock_in_an_object(void **state)
{
    struct world *world = *state;
    struct modules modules = {0};
    struct space *space;
    struct stack stack = {.depth = 0};
    const struct sample_labels labels = {.state = THREAD_SLEEPING, .syscall_number = -1};
    uint32_t sample;
    int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY);
    int maps_fd = open("/proc/self/maps", O_RDONLY);
    assert_int_equal(
        spaces_add(&world->results.spaces, &modules, getpid(), proc_fd, getpid(), maps_fd, &space),
        0);
    assert_int_equal(
        stack_table_add(&world->results.stacks, space->id, &stack, &labels, 0, 0, &sample), 0);
    uint32_t number = world->results.stacks.samples[sample].stack;
    uint64_t pointer = (uintptr_t)&vtable[2];
    const struct counted_wait wait = wait_in_object(world, number, pointer);
    assert_int_equal(wait.vtable, pointer);
    assert_int_equal(wait.space, space->id);
    /* Another class at that address gets a row of its own; the same class does not. */
    uint32_t first, again, other;
    const struct counted_wait same = wait_in_object(world, number, pointer),
                              changed = wait_in_object(world, number, (uintptr_t)&other_vtable[2]);
    assert_int_equal(waits_add(&world->results.waits, &wait, &first), 0);
    assert_int_equal(waits_add(&world->results.waits, &same, &again), 0);
    assert_int_equal(waits_add(&world->results.waits, &changed, &other), 0);
    assert_int_equal(again, first);
    assert_int_not_equal(other, first);
    /* Other data in a file, and data in no file. */
    assert_int_equal(wait_in_object(world, number, (uintptr_t)&table[2]).vtable, 0);
    assert_int_equal(wait_in_object(world, number, (uintptr_t)world).vtable, 0);
    /* The mappings are not known. */
    assert_int_equal(
        stack_table_add(&world->results.stacks, NO_SPACE, &stack, &labels, 0, 0, &sample), 0);
    number = world->results.stacks.samples[sample].stack;
    assert_int_equal(wait_in_object(world, number, pointer).vtable, 0);
    spaces_free(&world->results.spaces);
    world->results.spaces = (struct spaces){0};
    modules_free(&modules);
    close(proc_fd);
    close(maps_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(test_an_owner_that_sleeps),
        WITH_WORLD(test_an_owner_that_runs),
        WITH_WORLD(test_an_owner_that_has_moved),
        WITH_WORLD(test_the_end_of_a_sleep_is_told),
        WITH_WORLD(test_an_owner_that_was_another_when_the_wait_began),
        WITH_WORLD(test_a_chain),
        WITH_WORLD(test_a_circle_ends),
        WITH_WORLD(test_a_circle_is_the_same_at_each_look),
        WITH_WORLD(test_where_chains_end),
        WITH_WORLD(test_no_owner_is_invented),
        WITH_WORLD(test_very_many_threads_come_and_go),
        WITH_WORLD(test_a_lock_in_an_object),
        cmocka_unit_test_setup_teardown(test_a_process_with_one_thread, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
