/* A child that waits for the CPU of another child. Skipped if the kernel does not permit events. */
#include "unit.h"
#include "refuse_events.h"
#include "base/clock.h"
#include "observe/ring.h"
#include "observe/snapshot_pool.h"
#include "observe/switches.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define STACK_BYTES 4096u
#define WANTED 5
#define HANGS_NS 100000000000ull
#define COMPUTE_BYTES_MAX 512 /* size of that function, with sanitizers */

struct world {
    pid_t pid, other;
    struct stack_areas areas;
    struct switches *switches;
    struct snapshot snapshot;
};

/* Shared with the children. What a child does before it computes may take it from its CPU, too. */
/* What pause(3) calls; elsewhere it is ppoll. */
#ifdef SYS_pause
#define PAUSE_CALL SYS_pause
#else
#define PAUSE_CALL SYS_ppoll
#endif

static atomic_bool *is_computing;

__attribute__((noinline)) static void compute(void)
{
    atomic_store(is_computing, true);
    for (volatile unsigned i = 0;; i++) {
    }
}

static void pin(void)
{
    cpu_set_t allowed, one;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++) {
        if (CPU_ISSET(i, &allowed))
            CPU_SET(i, &one);
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
}

static pid_t start_child(bool is_sleeper)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(100);
        pin();
        if (is_sleeper)
            pause();
        compute();
    }
    return pid;
}

static struct world setup(bool is_sleeper)
{
    static const struct stack_place none = {0};
    is_computing =
        mmap(NULL, sizeof *is_computing, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(is_computing != MAP_FAILED);
    struct world world = {.pid = start_child(is_sleeper)};
    while (!is_sleeper && !atomic_load(is_computing))
        sched_yield();
    world.other = start_child(false);
    assert_true(snapshot_make_room(&world.snapshot, STACK_BYTES, &none));
    assert_int_equal(switches_new(&world.switches), 0);
    return world;
}

static void teardown(struct world *world)
{
    kill(world->pid, SIGKILL);
    kill(world->other, SIGKILL);
    waitpid(world->pid, NULL, 0);
    waitpid(world->other, NULL, 0);
    switches_free(world->switches);
    snapshot_clear(&world->snapshot);
    munmap(is_computing, sizeof *is_computing);
}

static void arm(struct world *world)
{
    int err = switches_add(world->switches, SWITCHES_ALWAYS, 1, world->pid);
    if (event_is_refused(err)) {
        teardown(world);
        skip();
    }
    assert_int_equal(err, 0);
}

static enum outcome observe(struct world *world, struct observation *ret_observation)
{
    const struct subject subject = {
        .thread = 1,
        .process_id = world->pid,
        .tid = world->pid,
        .stack_areas = &world->areas,
        .stack_limit = STACK_BYTES,
        .look.at_ns = monotonic_ns(),
        .awake_ns = monotonic_ns(),
    };
    *ret_observation = (struct observation){.snapshot = &world->snapshot};
    return switches_observe(world->switches, &subject, ret_observation);
}

static void test_waits_for_a_cpu(void **state)
{
    (void)state;
    struct world world = setup(false);
    struct observation observation;
    uint64_t until_ns = monotonic_ns() + HANGS_NS;
    unsigned waits = 0, runs = 0, in_compute = 0;
    arm(&world);
    assert_true(switches_have(world.switches, SWITCHES_ALWAYS, 1));
    while ((waits < WANTED || runs < WANTED) && monotonic_ns() < until_ns) {
        const struct timespec soon = {0, 1000000};
        nanosleep(&soon, NULL);
        enum outcome outcome = observe(&world, &observation);
        runs += outcome == OUTCOME_RUNNING;
        if (outcome != OUTCOME_OBSERVED)
            continue;
        waits++;
        assert_int_equal(observation.evidence, EVIDENCE_WAITING);
        assert_int_equal(observation.state, THREAD_RUNNABLE);
        assert_int_equal(world.snapshot.stack.address, registers_sp(&world.snapshot.registers));
        in_compute +=
            registers_pc(&world.snapshot.registers) - (uintptr_t)compute < COMPUTE_BYTES_MAX;
    }
    assert_true(waits >= WANTED && runs >= WANTED);
    assert_int_equal(in_compute, waits);
    teardown(&world);
}

static void test_nothing_is_known_without_a_switch(void **state)
{
    (void)state;
    struct world world = setup(true);
    struct observation observation;
    char path[64], line[256] = "";
    /* Wait until it sleeps in its final place: it may also have waited to be moved to its CPU. */
    snprintf(path, sizeof path, "/proc/%d/syscall", world.pid);
    while (strtol(line, NULL, 10) != PAUSE_CALL) {
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_non_null(fgets(line, sizeof line, file));
        fclose(file);
    }
    arm(&world);
    assert_int_equal(observe(&world, &observation), OUTCOME_REFUSED);
    switches_drop(world.switches, SWITCHES_ALWAYS, 1);
    assert_false(switches_have(world.switches, SWITCHES_ALWAYS, 1));
    assert_int_equal(observe(&world, &observation), OUTCOME_REFUSED);
    teardown(&world);
}

static void test_registers_of_a_sleeper(void **state)
{
    (void)state;
    struct world world = setup(false);
    struct observation observation;
    struct registers registers = {0}, other;
    uint64_t until_ns = monotonic_ns() + HANGS_NS;
    arm(&world);
    enum outcome outcome = OUTCOME_REFUSED;
    while (outcome != OUTCOME_OBSERVED && monotonic_ns() < until_ns)
        outcome = observe(&world, &observation);
    assert_int_equal(outcome, OUTCOME_OBSERVED);
    /* Stop it where it left its CPU, so that no newer record comes. */
    assert_int_equal(kill(world.pid, SIGSTOP), 0);
    assert_int_equal(waitpid(world.pid, NULL, WUNTRACED), world.pid);
    while (observe(&world, &observation) != OUTCOME_OBSERVED && monotonic_ns() < until_ns) {
    }
    const struct registers *all = &world.snapshot.registers;
    registers_set(&registers, architecture.pc, registers_pc(all));
    registers_set(&registers, architecture.sp, registers_sp(all) + 8);
    other = registers;
    switches_complete(world.switches, 1, &other); /* another place */
    assert_memory_equal(&other, &registers, sizeof other);
    registers_set(&registers, architecture.sp, registers_sp(all));
    switches_complete(world.switches, 2, &registers); /* another thread */
    assert_false(registers_has(&registers, architecture.frame_pointer));
    switches_complete(world.switches, 1, &registers);
    assert_true(registers_has(&registers, architecture.frame_pointer));
    assert_memory_equal(registers.values, all->values, sizeof registers.values);
    teardown(&world);
}

/* While `now_ns` is set, it is the time, and opening an event fails with `refusal`. */
static struct {
    uint64_t now_ns;
    int refusal;
    unsigned tries;
} played;

uint64_t __real_monotonic_ns(void);
uint64_t __wrap_monotonic_ns(void);
uint64_t __wrap_monotonic_ns(void)
{
    return played.now_ns ? played.now_ns : __real_monotonic_ns();
}

int __real_ring_open(const struct perf_event_attr *attributes, pid_t tid, int cpu,
                     size_t data_bytes, enum ring_kind kind, struct ring *ret_ring);
int __wrap_ring_open(const struct perf_event_attr *attributes, pid_t tid, int cpu,
                     size_t data_bytes, enum ring_kind kind, struct ring *ret_ring);
int __wrap_ring_open(const struct perf_event_attr *attributes, pid_t tid, int cpu,
                     size_t data_bytes, enum ring_kind kind, struct ring *ret_ring)
{
    if (!played.now_ns)
        return __real_ring_open(attributes, tid, cpu, data_bytes, kind, ret_ring);
    played.tries++;
    return played.refusal;
}

/* Each try would interrupt a thread, and there may be hundreds that want an event. */
static void test_none_is_tried_for_a_while_after_a_refusal(void **state)
{
    (void)state;
    static const int errors[] = {-ENOBUFS, -EMFILE};
    struct switches *switches;
    assert_int_equal(switches_new(&switches), 0);
    played.now_ns = monotonic_ns();
    for (unsigned kind = 0; kind < SWITCHES_KINDS; kind++) {
        for (unsigned i = 0; i < 2; i++) {
            played.refusal = errors[i];
            played.tries = 0;
            for (uint32_t thread = 1; thread < 100; thread++)
                assert_int_equal(switches_add(switches, kind, thread, getpid()), errors[i]);
            assert_int_equal(played.tries, 1);
            played.now_ns += NS_PER_S;
            assert_int_equal(switches_add(switches, kind, 1, getpid()), errors[i]);
            assert_int_equal(played.tries, 2);
            played.now_ns += NS_PER_S;
        }
        played.refusal = -ESRCH;
        for (uint32_t thread = 1; thread < 4; thread++)
            assert_int_equal(switches_add(switches, kind, thread, getpid()), -ESRCH);
        assert_int_equal(played.tries, 5); /* a thread that has ended says nothing about others */
    }
    assert_false(switches_have(switches, SWITCHES_ALWAYS, 1));
    played.now_ns = 0;
    switches_free(switches);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_for_a_cpu),
        cmocka_unit_test(test_registers_of_a_sleeper),
        cmocka_unit_test(test_nothing_is_known_without_a_switch),
        cmocka_unit_test(test_none_is_tried_for_a_while_after_a_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
