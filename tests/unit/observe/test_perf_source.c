/* Samples by the kernel, of a child that computes. Skipped if the kernel does not permit them. */
#include "unit.h"
#include "offline_cpu.h"
#include "refuse_events.h"
#include "base/clock.h"
#include "observe/bpf/process_set.h"
#include "observe/events.h"
#include "observe/perf_source.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define PERIOD_NS 1000000u
#define HELD_NS 500000000u
#define STACK_BYTES 4096u
#define SAMPLES_WANTED 20
#define CHILDREN 5
#define HANGS_NS 100000000000ull
#define COMPUTE_BYTES_MAX 512 /* size of that function, with sanitizers */

struct world {
    pid_t pid;
    struct snapshot_pool *snapshots;
    struct perf_source *source;
};

__attribute__((noinline)) static void compute(void)
{
    for (volatile unsigned i = 0;; i++) {
    }
}

/* Spends most of its time in the kernel. */
static void read_zeroes(void)
{
    static char block[1 << 20];
    int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    while (read(fd, block, sizeof block) == sizeof block) {
    }
}

/* The child's stack is larger than the first events copy. */
static pid_t start_child_for(void work(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        volatile char deep[2 * STACK_BYTES];
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(100);
        memset((char *)deep, 1, sizeof deep);
        work();
        _exit(1);
    }
    return pid;
}

static pid_t start_child(void)
{
    return start_child_for(compute);
}

static struct world setup_with(bool has_kernel_chains, void work(void))
{
    struct world world = {0};
    assert_int_equal(snapshot_pool_new(&world.snapshots), 0);
    const struct perf_source_options options = {
        .period_ns = PERIOD_NS,
        .held_ns = HELD_NS,
        .stack_limit = STACK_BYTES,
        .has_kernel_chains = has_kernel_chains,
        .snapshots = world.snapshots,
    };
    int err = perf_source_new(&options, &world.source);
    if (err) {
        /* -ENOSYS: a kernel without perf events */
        assert_true(err == -EACCES || err == -EPERM || err == -ENOSYS || err == -ENOENT);
        snapshot_pool_free(world.snapshots);
        skip();
    }
    world.pid = start_child_for(work);
    return world;
}

static struct world setup(void)
{
    return setup_with(false, compute);
}

static void teardown(struct world *world)
{
    kill(world->pid, SIGKILL);
    waitpid(world->pid, NULL, 0);
    perf_source_free(world->source);
    snapshot_pool_free(world->snapshots);
}

static bool covers(const struct world *world, pid_t pid, size_t stack_limit, uint64_t other_address)
{
    const struct stack_place other = {other_address, 4096};
    return perf_source_covers(world->source, pid, pid, stack_limit, &other);
}

static void follow(const struct world *world, pid_t pid)
{
    assert_int_equal(perf_source_follow(world->source, pid), 0);
    assert_true(covers(world, pid, STACK_BYTES, 0));
}

/* Takes samples until there are enough of them. */
static void collect(const struct world *world, void check(const struct observation *), int wanted)
{
    const struct timespec soon = {0, PERIOD_NS};
    uint64_t until_ns = monotonic_ns() + HANGS_NS;
    struct observation observation;
    while (wanted > 0 && monotonic_ns() < until_ns) {
        nanosleep(&soon, NULL);
        while (perf_source_collect(world->source, &observation)) {
            assert_int_equal(observation.process_id, world->pid);
            check(&observation);
            snapshot_pool_give(world->snapshots, observation.snapshot, false);
            wanted--;
        }
    }
    assert_true(wanted <= 0);
}

static int in_compute;

static void is_whole(const struct observation *observation)
{
    const struct snapshot *snapshot = observation->snapshot;
    const struct registers *registers = &snapshot->registers;
    uint64_t now_ns = monotonic_ns();
    assert_int_equal(observation->tid, observation->process_id);
    assert_int_equal(observation->evidence, EVIDENCE_SAMPLED);
    assert_int_equal(observation->state, THREAD_RUNNING);
    assert_true(observation->sampled.at_ns <= now_ns &&
                observation->sampled.at_ns + HANGS_NS > now_ns);
    for (unsigned i = 0; i < architecture.register_count; i++)
        assert_true(registers_has(registers, i));
    assert_int_equal(registers->interrupted_call, -1);
    assert_int_equal(snapshot->stack.address, registers_sp(registers));
    assert_true(snapshot->stack.bytes > 0);
    /* The child runs our own program, so its code has the same addresses. */
    in_compute += registers_pc(registers) - (uintptr_t)compute < COMPUTE_BYTES_MAX;
}

static void test_samples_what_runs(void **state)
{
    (void)state;
    struct world world = setup();
    follow(&world, world.pid);
    in_compute = 0;
    collect(&world, is_whole, SAMPLES_WANTED);
    assert_true(in_compute > SAMPLES_WANTED / 2);
    teardown(&world);
}

/* ---- Kernel chains ---- */

#define KERNEL_BEGIN ((uint64_t)1 << 63) /* on all supported architectures */

static int sampled, with_chain;
static uint64_t roots[SAMPLES_WANTED]; /* where each of the first chains began */

static void note_chain(const struct observation *observation)
{
    const struct kernel_chain *chain = &observation->snapshot->kernel_chain;
    assert_true(observation->snapshot->stack.bytes > 0);
    assert_true(registers_pc(&observation->snapshot->registers) < KERNEL_BEGIN);
    assert_true(chain->count <= KERNEL_CHAIN_MAX);
    assert_false(chain->is_cut);
    for (unsigned i = 0; i < chain->count; i++)
        assert_true(chain->addresses[i] >= KERNEL_BEGIN);
    sampled++;
    if (!chain->count)
        return;
    if (with_chain < SAMPLES_WANTED)
        roots[with_chain] = chain->addresses[chain->count - 1];
    with_chain++;
}

static int most_of_one_root(void)
{
    int most = 0;
    for (int i = 0; i < with_chain && i < SAMPLES_WANTED; i++) {
        int count = 0;
        for (int other = 0; other < with_chain && other < SAMPLES_WANTED; other++)
            count += roots[other] == roots[i];
        most = count > most ? count : most;
    }
    return most;
}

static void count_chains(bool are_wanted, void work(void))
{
    struct world world = setup_with(are_wanted, work);
    follow(&world, world.pid);
    sampled = with_chain = 0;
    collect(&world, note_chain, SAMPLES_WANTED);
    teardown(&world);
}

static void test_kernel_chains_of_system_calls(void **state)
{
    (void)state;
    count_chains(true, read_zeroes);
    assert_true(with_chain > sampled / 2);
    /* There is one system call, with one entry; the first samples can be page faults of a new
     * child. */
    assert_true(most_of_one_root() > SAMPLES_WANTED / 2);
    count_chains(true, compute);
    assert_true(with_chain < sampled / 2); /* some have: after a time without a CPU, even many */
}

static void test_no_kernel_chains_unless_wanted(void **state)
{
    (void)state;
    count_chains(false, read_zeroes);
    assert_int_equal(with_chain, 0);
}

static void test_other_processes_are_dropped(void **state)
{
    (void)state;
    struct world world = setup();
    struct observation observation;
    pid_t other = start_child();
    /* `collect` checks that samples are of the followed child; the other one also computes. */
    follow(&world, world.pid);
    collect(&world, is_whole, SAMPLES_WANTED);
    perf_source_unfollow(world.source, world.pid);
    while (perf_source_collect(world.source, &observation))
        fail();
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    teardown(&world);
}

static size_t most_bytes;

static void note_bytes(const struct observation *observation)
{
    const struct stack_copy *stack = &observation->snapshot->stack;
    most_bytes = stack->bytes > most_bytes ? stack->bytes : most_bytes;
}

static void test_stack_sizes_follow_the_need(void **state)
{
    (void)state;
    struct world world = setup();
    follow(&world, world.pid);
    assert_int_equal(perf_source_adjust(world.source, 2048), 0);
    most_bytes = 0;
    collect(&world, note_bytes, SAMPLES_WANTED);
    assert_in_range(most_bytes, 1, 2048);
    teardown(&world);
}

/* ---- CPUs ---- */

/* Two children, each on a CPU of its own, of which the first has the lower number. */
struct pair {
    struct world world;
    pid_t pids[2];
    int cpus[2];
};

static void pin(pid_t pid, int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    assert_int_equal(sched_setaffinity(pid, sizeof set, &set), 0);
}

static struct pair begin_pair(void)
{
    struct pair pair = {0};
    cpu_set_t all;
    int found = 0;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
        if (CPU_ISSET(cpu, &all))
            pair.cpus[found++] = cpu;
    }
    if (found < 2)
        skip();
    pair.world = setup();
    pair.pids[0] = pair.world.pid;
    pair.pids[1] = start_child();
    for (int i = 0; i < 2; i++) {
        pin(pair.pids[i], pair.cpus[i]);
        follow(&pair.world, pair.pids[i]);
    }
    if (perf_source_scope(pair.world.source) != PERF_SCOPE_CPUS)
        skip();
    return pair;
}

static void end_pair(struct pair *pair)
{
    kill(pair->pids[1], SIGKILL);
    waitpid(pair->pids[1], NULL, 0);
    teardown(&pair->world);
}

/* Lets a child compute for this long, and then stops it: its samples wait in its CPU's ring. */
static void compute_for(pid_t pid, uint64_t cpu_ns)
{
    clockid_t clock;
    struct timespec begin, now;
    assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
    assert_int_equal(clock_gettime(clock, &begin), 0);
    assert_int_equal(kill(pid, SIGCONT), 0);
    do {
        sched_yield();
        assert_int_equal(clock_gettime(clock, &now), 0);
    } while ((uint64_t)(now.tv_sec - begin.tv_sec) * 1000000000u + (uint64_t)now.tv_nsec <
             (uint64_t)begin.tv_nsec + cpu_ns);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
}

/* Counts the available samples of each child. */
static void count_samples(const struct pair *pair, unsigned ret_counts[2])
{
    struct observation observation;
    struct perf_source *source = pair->world.source;
    ret_counts[0] = ret_counts[1] = 0;
    while (perf_source_collect(source, &observation)) {
        ret_counts[observation.process_id == pair->pids[1]]++;
        snapshot_pool_give(pair->world.snapshots, observation.snapshot, false);
    }
}

/* The worker is behind, so that snapshots are scarce. */
static void test_no_cpu_is_left_out(void **state)
{
    static const struct stack_place no_place = {0};
    struct pair pair = begin_pair();
    struct perf_source *source = pair.world.source;
    struct snapshot *taken[SNAPSHOTS_MAX];
    struct observation observation;
    unsigned counts[2] = {0}, before = 0;
    uint64_t last_ns = 0;
    (void)state;
    for (int i = 0; i < 2; i++)
        compute_for(pair.pids[i], 20 * PERIOD_NS);
    count_samples(&pair, counts);
    for (int i = 0; i < 4; i++)
        compute_for(pair.pids[i % 2], 5 * PERIOD_NS);
    for (unsigned i = 0; i < SNAPSHOTS_MAX - 1; i++)
        assert_non_null(taken[i] =
                            snapshot_pool_take(pair.world.snapshots, STACK_BYTES, &no_place));
    memset(counts, 0, sizeof counts);
    while (perf_source_collect(source, &observation)) {
        assert_true(observation.sampled.at_ns >= last_ns);
        last_ns = observation.sampled.at_ns;
        before += observation.process_id == pair.pids[0] && counts[1];
        counts[observation.process_id == pair.pids[1]]++;
        assert_false(perf_source_collect(source, &observation)); /* there is none left */
        snapshot_pool_give(pair.world.snapshots, observation.snapshot, false);
    }
    assert_true(counts[0] > 1 && counts[1] > 1);
    assert_true(before > 0); /* a sample of the lower CPU came after one of the higher */
    for (unsigned i = 0; i < SNAPSHOTS_MAX - 1; i++)
        snapshot_pool_give(pair.world.snapshots, taken[i], false);
    end_pair(&pair);
}

static void test_a_cpu_that_has_ended_is_read_and_comes_back(void **state)
{
    struct pair pair = begin_pair();
    unsigned counts[2];
    (void)state;
    compute_for(pair.pids[1], 20 * PERIOD_NS);
    kill(pair.pids[0], SIGSTOP);
    offline_cpu = pair.cpus[1];
    assert_int_equal(perf_source_adjust(pair.world.source, STACK_BYTES), 0);
    count_samples(&pair, counts);
    assert_true(counts[1] > 0); /* the contents of its ring */
    compute_for(pair.pids[1], 20 * PERIOD_NS);
    count_samples(&pair, counts);
    assert_int_equal(counts[1], 0);
    offline_cpu = -1;
    assert_int_equal(perf_source_adjust(pair.world.source, STACK_BYTES), 0);
    compute_for(pair.pids[1], 20 * PERIOD_NS);
    count_samples(&pair, counts);
    assert_true(counts[1] > 0);
    end_pair(&pair);
}

/* The contents of rings are still collected when larger rings replace them. */
static void test_nothing_is_lost_when_events_are_replaced(void **state)
{
    struct pair pair = begin_pair();
    unsigned counts[2];
    (void)state;
    compute_for(pair.pids[1], 20 * PERIOD_NS);
    assert_int_equal(perf_source_adjust(pair.world.source, 2 * STACK_BYTES), 0);
    count_samples(&pair, counts);
    assert_true(counts[1] > 0);
    end_pair(&pair);
}

/* ---- Processes ---- */

#define PROCESSES_MANY 10000
#define NO_PROCESS_FROM (PROCESS_IDS - PROCESSES_MANY) /* hardly any machine has this many */

static void test_very_many_processes(void **state)
{
    struct pair pair = begin_pair();
    struct perf_source *source = pair.world.source;
    unsigned counts[2];
    (void)state;
    perf_source_unfollow(source, pair.pids[1]);
    compute_for(pair.pids[0], 20 * PERIOD_NS);
    for (pid_t pid = NO_PROCESS_FROM; pid < (pid_t)PROCESS_IDS; pid++)
        assert_int_equal(perf_source_follow(source, pid), 0);
    follow(&pair.world, pair.pids[1]);
    count_samples(&pair, counts);
    assert_true(counts[0] > 0); /* the contents of the rings */
    for (int i = 0; i < 2; i++)
        compute_for(pair.pids[i], 20 * PERIOD_NS);
    count_samples(&pair, counts);
    assert_true(counts[0] > 0 && counts[1] > 0);
    end_pair(&pair);
}

static void test_a_process_that_is_not_followed_is_refused(void **state)
{
    (void)state;
    struct world world = setup();
    assert_false(covers(&world, world.pid, STACK_BYTES, 0));
    teardown(&world);
}

static void test_what_samples_cant_show_is_refused(void **state)
{
    (void)state;
    struct world world = setup();
    assert_int_equal(perf_source_follow(world.source, world.pid), 0);
    assert_true(covers(&world, world.pid, PERF_STACK_LIMIT_MAX, 0));
    assert_false(covers(&world, world.pid, PERF_STACK_LIMIT_MAX + 1, 0));
    assert_false(covers(&world, world.pid, STACK_BYTES, 4096));
    teardown(&world);
}

/* Processes that are followed later have no filter either. */
static void test_the_refusal_of_a_filter_is_kept(void **state)
{
    (void)state;
    refuse_call(SYS_bpf, EPERM);
    struct world world = setup();
    if (perf_source_scope(world.source) == PERF_SCOPE_CPUS)
        assert_int_equal(perf_source_filter_refusal(world.source), -EPERM);
    teardown(&world);
}

/* All threads' events are replaced, however many there are. This test must come last. */
static void test_stack_sizes_follow_the_need_of_all_threads(void **state)
{
    (void)state;
    pid_t pids[CHILDREN];
    int seen[CHILDREN] = {0};
    struct observation observation;
    refuse_events_of_cpus();
    struct world world = setup();
    assert_int_equal(perf_source_scope(world.source), PERF_SCOPE_THREADS);
    assert_int_equal(perf_source_filter_refusal(world.source), 0); /* they need none */
    for (size_t i = 0; i < CHILDREN; i++) {
        pids[i] = start_child();
        follow(&world, pids[i]);
    }
    assert_int_equal(perf_source_adjust(world.source, 2 * STACK_BYTES), 0);
    uint64_t until_ns = monotonic_ns() + HANGS_NS;
    for (size_t all = 0; all < CHILDREN && monotonic_ns() < until_ns;) {
        while (perf_source_collect(world.source, &observation)) {
            bool is_large = observation.snapshot->stack.bytes > STACK_BYTES;
            for (size_t i = 0; i < CHILDREN; i++)
                all += is_large && observation.process_id == pids[i] && !seen[i]++;
            snapshot_pool_give(world.snapshots, observation.snapshot, false);
        }
    }
    for (size_t i = 0; i < CHILDREN; i++) {
        assert_true(seen[i]);
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    teardown(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_what_runs),
        cmocka_unit_test(test_kernel_chains_of_system_calls),
        cmocka_unit_test(test_no_kernel_chains_unless_wanted),
        cmocka_unit_test(test_other_processes_are_dropped),
        cmocka_unit_test(test_stack_sizes_follow_the_need),
        cmocka_unit_test(test_no_cpu_is_left_out),
        cmocka_unit_test(test_a_cpu_that_has_ended_is_read_and_comes_back),
        cmocka_unit_test(test_nothing_is_lost_when_events_are_replaced),
        cmocka_unit_test(test_very_many_processes),
        cmocka_unit_test(test_a_process_that_is_not_followed_is_refused),
        cmocka_unit_test(test_what_samples_cant_show_is_refused),
        cmocka_unit_test(test_the_refusal_of_a_filter_is_kept),
        cmocka_unit_test(test_stack_sizes_follow_the_need_of_all_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
