/* Page faults of a child that touches memory. Skipped if the kernel does not report them. */
#include "unit.h"
#include "offline_cpu.h"
#include "observe/refuse_events.h"
#include "base/clock.h"
#include "objects/faults.h"
#include "observe/bpf/perf_filter.h"
#include "observe/bpf/process_set.h"
#include "observe/snapshot_pool.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>

#define SEED 1
#define PAGES 4000u
#define FEW 50u
#define PART 200u
#define ROUNDS 3u
#define FLOOD_ROUNDS 50u
#define ATTEMPTS 10
#define HANGS_NS 100000000000ull
#define READ_EACH_NS 2000000
#define TOUCH_BYTES 256 /* at most, of the code of touch */
/* More stack than is reported at first, and enough pages for the depth to be judged. */
#define DEEP_BYTES (20u << 10)
#define DEEP_PAGES 80u

/* What was reported about a page. */
struct seen {
    unsigned times;
    uint64_t weight;
};

struct world {
    struct faults *faults;
    unsigned char *memory; /* the child has it at the same address */
    size_t page_bytes;
    pid_t pid;
    int steps; /* a pipe: the child does a step for each byte */
    int done;  /* and answers */
    struct seen seen[PAGES];
    unsigned elsewhere;
    unsigned level; /* the largest */
    uint64_t begin_ns;
    struct snapshot_pool *snapshots; /* NULL: stacks are not read */
};

static struct world world;

typedef void step_fn(void);

/* Memory that the child inherits, and that is untouched. */
static void map_memory(void)
{
    world.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    world.memory = mmap(NULL, PAGES * world.page_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(world.memory != MAP_FAILED);
    madvise(world.memory, PAGES * world.page_bytes, MADV_NOHUGEPAGE);
}

static void begin(step_fn *const *steps)
{
    int go[2], done[2];
    memset(&world, 0, sizeof world);
    world.begin_ns = monotonic_ns();
    int err = faults_new(SEED, &world.faults);
    if (err) {
        /* -ENOSYS: a kernel without perf events */
        assert_true(err == -EACCES || err == -EPERM || err == -ENOSYS || err == -ENOENT);
        skip();
    }
    map_memory();
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(done), 0);
    world.pid = fork();
    if (world.pid == 0) {
        char byte;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(100);
        close(go[1]);
        for (; *steps && read(go[0], &byte, 1) == 1; steps++) {
            (*steps)();
            if (write(done[1], &byte, 1) != 1)
                break;
        }
        pause();
    }
    close(go[0]);
    close(done[1]);
    world.steps = go[1];
    world.done = done[0];
    struct process process;
    assert_int_equal(process_open(world.pid, &process), 0);
    assert_int_equal(faults_follow(world.faults, &process), 0);
    process_close(&process);
}

/* Rests between steps, so that faults are not so many that some on a page are not reported. */
static void rest(void)
{
    const struct timespec while_judged = {0, 250000000};
    nanosleep(&while_judged, NULL);
}

static unsigned level_now(void)
{
    return faults_levels(world.faults).of[PAGES_INSIDE];
}

static void read_stack(void)
{
    const struct stack_place no_place = {0};
    if (!world.snapshots)
        return;
    struct snapshot *snapshot =
        snapshot_pool_take(world.snapshots, faults_stack_bytes(world.faults), &no_place);
    assert_true(faults_copy_stack(world.faults, snapshot));
    snapshot_pool_give(world.snapshots, snapshot, false);
}

static void take_all(void)
{
    const struct fault *fault;
    uint64_t last_ns = world.begin_ns;
    assert_int_equal(faults_read(world.faults), 0);
    if (level_now() > world.level)
        world.level = level_now();
    while ((fault = faults_next(world.faults))) {
        size_t page = (fault->address - (uintptr_t)world.memory) / world.page_bytes;
        assert_int_equal(fault->process_id, world.pid);
        assert_int_equal(fault->tid, world.pid);
        assert_true(fault->at_ns >= last_ns);
        assert_true(fault->has_stack && fault->weight > 0);
        last_ns = fault->at_ns;
        if (fault->address >= (uintptr_t)world.memory && page < PAGES) {
            world.seen[page].times++;
            world.seen[page].weight += fault->weight;
        } else {
            world.elsewhere++;
        }
        read_stack();
        faults_skip(world.faults);
    }
    assert_true(last_ns <= monotonic_ns());
}

/* Makes the child do its next step, and leaves its faults in the rings. */
static void step_unread(void)
{
    char byte = 0;
    assert_int_equal(write(world.steps, &byte, 1), 1);
    while (read(world.done, &byte, 1) != 1)
        assert_int_equal(errno, EAGAIN);
}

/* Makes the child do its next step, and reads faults meanwhile. */
static void step(void)
{
    const struct timespec soon = {0, READ_EACH_NS};
    uint64_t until_ns = monotonic_ns() + HANGS_NS;
    char byte = 0;
    assert_int_equal(write(world.steps, &byte, 1), 1);
    fcntl(world.done, F_SETFL, O_NONBLOCK);
    while (read(world.done, &byte, 1) != 1) {
        take_all();
        nanosleep(&soon, NULL);
        assert_true(monotonic_ns() < until_ns);
    }
    take_all();
}

static void end(void)
{
    kill(world.pid, SIGKILL);
    waitpid(world.pid, NULL, 0);
    close(world.steps);
    close(world.done);
    munmap(world.memory, PAGES * world.page_bytes);
    faults_free(world.faults);
}

__attribute__((noinline)) static void touch(size_t count)
{
    for (size_t i = 0; i < count; i++)
        *(volatile unsigned char *)(world.memory + i * world.page_bytes) = 1;
}

static void touch_few(void)
{
    touch(FEW);
}

__attribute__((noinline)) static void touch_deep(void)
{
    unsigned char frame[DEEP_BYTES];
    memset(frame, 1, sizeof frame);
    __asm__ volatile("" : : "r"(frame) : "memory");
    touch(DEEP_PAGES);
    __asm__ volatile("" : : "r"(frame) : "memory");
}

static void touch_all(void)
{
    touch(PAGES);
}

/* The reports of one part fit into the smallest rings. */
static void touch_by_parts(void)
{
    const struct timespec pause = {0, 5 * READ_EACH_NS};
    for (size_t i = 0; i < PAGES; i++) {
        *(volatile unsigned char *)(world.memory + i * world.page_bytes) = 1;
        if (i % PART == 0)
            nanosleep(&pause, NULL);
    }
}

static void read_few(void)
{
    for (size_t i = 0; i < FEW; i++)
        (void)*(volatile unsigned char *)(world.memory + i * world.page_bytes);
}

static void drop_all(void)
{
    madvise(world.memory, PAGES * world.page_bytes, MADV_DONTNEED);
}

static void flood(void)
{
    for (unsigned i = 0; i < FLOOD_ROUNDS; i++) {
        touch_all();
        drop_all();
    }
}

/* Shares all pages with a child of its own for a moment. */
static void share(void)
{
    if (fork() == 0)
        _exit(0);
    touch(FEW);
}

static void read_into_few(void)
{
    int fd = open("/dev/zero", O_RDONLY);
    if (fd >= 0 && read(fd, world.memory, FEW * world.page_bytes) > 0)
        close(fd);
}

static uint64_t total(void)
{
    uint64_t weight = 0;
    for (size_t i = 0; i < PAGES; i++)
        weight += world.seen[i].weight;
    return weight;
}

static void assert_times(size_t count, unsigned times)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(world.seen[i].times, times);
}

static bool is_by_page(void)
{
    return faults_choice(world.faults) == FAULTS_BY_PAGE;
}

/* By page, all faults are reported if they are few. */
static void test_few_faults_are_all_told(void **state)
{
    (void)state;
    step_fn *const steps[] = {touch_few, drop_all, touch_few, NULL};
    begin(steps);
    if (is_by_page()) {
        step();
        if (world.level == 0) {
            assert_times(FEW, 1);
            assert_int_equal(total(), FEW);
        }
        assert_int_equal(faults_filter_refusal(world.faults), 0);
        assert_false(faults_are_rough(world.faults));
    }
    end();
}

/* Checks how often each page was reported that has been chosen all the time. */
static void assert_chosen_times(unsigned times)
{
    uint64_t limit = UINT64_MAX >> world.level;
    size_t chosen = 0;
    for (size_t i = 0; i < PAGES; i++) {
        uint64_t address = (uintptr_t)world.memory + i * world.page_bytes;
        if (filter_page_rank(SEED, address) > limit || filter_page_group(address) != PAGES_INSIDE)
            continue;
        assert_int_equal(world.seen[i].times, times);
        chosen++;
    }
    assert_true(chosen > 0);
}

/* Returns false if this program did not get a CPU in time, and faults were lost. */
static bool faults_are_chosen_by_page(void)
{
    step_fn *const steps[] = {touch_all, drop_all, touch_all, drop_all, touch_all, drop_all, NULL};
    begin(steps);
    bool is_whole = true;
    for (unsigned round = 1; round <= ROUNDS && is_by_page() && is_whole; round++) {
        step();
        assert_true(level_now() > 0);
        is_whole = faults_lost(world.faults) == 0;
        if (is_whole)
            assert_chosen_times(round);
        rest();
        step();
    }
    end();
    return is_whole;
}

/* Faults are chosen by their pages, so all faults on a page are reported, or none. */
static void test_many_faults_are_chosen_by_page(void **state)
{
    (void)state;
    int attempt = 0;
    while (attempt < ATTEMPTS && !faults_are_chosen_by_page())
        attempt++;
    assert_in_range(attempt, 0, ATTEMPTS - 1);
}

/* Even checking a fault takes time: if very many come at once, not all are checked. */
static void test_a_flood_is_not_looked_at(void **state)
{
    (void)state;
    step_fn *const steps[] = {touch_all, flood, NULL};
    begin(steps);
    if (is_by_page()) {
        step();
        assert_false(faults_are_rough(world.faults) && faults_lost(world.faults) == 0);
        step();
        assert_true(faults_are_rough(world.faults));
    }
    end();
}

/* A page that is only read is not reported again at another level: its weight is that of its
 * level. */
static void test_weights_add_up(void **state)
{
    (void)state;
    step_fn *const steps[] = {touch_all, NULL};
    begin(steps);
    step();
    if (is_by_page()) {
        /* The first reports weigh less, but there are more of them. */
        uint64_t weight = total();
        assert_in_range(weight, PAGES / 2, 2 * PAGES);
    }
    end();
}

static void test_only_new_pages_count(void **state)
{
    (void)state;
    step_fn *const steps[] = {read_few, touch_few, share, NULL};
    begin(steps);
    if (is_by_page()) {
        step();
        step();
        /* First the zero page, then memory. */
        if (world.level == 0)
            assert_times(FEW, 2);
        unsigned elsewhere = world.elsewhere;
        step();
        if (world.level == 0)
            assert_times(FEW, 2); /* these are copies */
        assert_true(world.elsewhere >= elsewhere);
    }
    end();
}

static void test_faults_of_system_calls(void **state)
{
    (void)state;
    step_fn *const steps[] = {read_into_few, NULL};
    begin(steps);
    step();
    if (is_by_page() && world.level == 0)
        assert_times(FEW, 1);
    end();
}

/* The child is a copy of this program, so its code has the same addresses. */
static bool is_in_touch(uint64_t pc)
{
    uint64_t start = (uintptr_t)&touch;
    return pc >= start && pc < start + TOUCH_BYTES;
}

static void test_stacks(void **state)
{
    (void)state;
    struct snapshot_pool *snapshots;
    step_fn *const steps[] = {touch_few, NULL};
    const struct fault *fault;
    size_t in_touch = 0;
    assert_int_equal(snapshot_pool_new(&snapshots), 0);
    begin(steps);
    assert_int_equal(write(world.steps, "", 1), 1);
    char byte;
    assert_int_equal(read(world.done, &byte, 1), 1);
    assert_int_equal(faults_read(world.faults), 0);
    while ((fault = faults_next(world.faults))) {
        struct snapshot *snapshot = snapshot_pool_take(snapshots, faults_stack_bytes(world.faults),
                                                       &(struct stack_place){0});
        assert_true(faults_copy_stack(world.faults, snapshot));
        if (is_in_touch(registers_pc(&snapshot->registers))) {
            uint64_t sp = registers_sp(&snapshot->registers);
            assert_int_equal(snapshot->stack.address, sp);
            assert_true(snapshot->stack.bytes > 0);
            in_touch++;
        }
        snapshot_pool_give(snapshots, snapshot, false);
        faults_skip(world.faults);
    }
    assert_true(in_touch > 0);
    end();
    snapshot_pool_free(snapshots);
}

/* ---- Another profiler of page faults ---- */

/* It uses another clock, and requests other fields. Its events need no rings for that. */
static bool open_other_events(void)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_PAGE_FAULTS,
        .sample_period = 1,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN |
                       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
        .sample_regs_user = registers_sample_mask,
        .sample_stack_user = 512,
    };
    int opened = 0;
    for (int cpu = 0; cpu < get_nprocs_conf(); cpu++)
        opened += syscall(SYS_perf_event_open, &attr, -1, cpu, -1, 0) >= 0;
    return opened == get_nprocs();
}

/* Starts it in a PID namespace of its own. Returns the parent of that namespace's first process; -1
 * if it is not permitted. */
static pid_t start_other_profiler(void)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pid_t inner = unshare(CLONE_NEWPID) ? -1 : fork();
        if (inner == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            alarm(100);
            if (!open_other_events() || write(ready[1], "", 1) != 1)
                _exit(1);
            pause();
        }
        close(ready[1]);
        waitpid(inner, NULL, 0);
        _exit(1);
    }
    close(ready[1]);
    bool is_ready = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    if (!is_ready)
        waitpid(pid, NULL, 0);
    return is_ready ? pid : -1;
}

/* The kernel then fills in our samples with the settings of the other profiler. */
static void test_another_profiler_changes_nothing(void **state)
{
    (void)state;
    step_fn *const steps[] = {read_few, touch_few, share, NULL};
    begin(steps);
    pid_t other = is_by_page() ? start_other_profiler() : -1;
    if (other < 0) {
        end();
        skip();
    }
    step();
    step();
    if (world.level == 0)
        assert_times(FEW, 2);
    step();
    if (world.level == 0)
        assert_times(FEW, 2);
    assert_int_equal(faults_lost(world.faults), 0);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    end();
}

/* ---- CPUs that go offline ---- */

/* Finds the first two CPUs on which we may run. */
static void find_cpus(int cpus[2])
{
    cpu_set_t all;
    int found = 0;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
        if (CPU_ISSET(cpu, &all))
            cpus[found++] = cpu;
    }
    if (found < 2)
        skip();
}

static void pin_child(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    assert_int_equal(sched_setaffinity(world.pid, sizeof set, &set), 0);
}

/* Makes only this CPU seem offline (-1: none), once the online CPUs are read again. */
static void set_offline(int cpu)
{
    const struct timespec until_looked_for = {1, 100000000};
    offline_cpu = cpu;
    nanosleep(&until_looked_for, NULL);
    take_all();
}

/* Also, pages that are touched again are not mistaken for those that were touched before. */
static void test_a_cpu_that_has_ended_is_read_and_comes_back(void **state)
{
    (void)state;
    step_fn *const steps[] = {touch_few, drop_all, touch_few, NULL};
    int cpus[2];
    find_cpus(cpus);
    begin(steps);
    if (is_by_page()) {
        pin_child(cpus[1]);
        step_unread();
        set_offline(cpus[1]);
        if (world.level == 0)
            assert_times(FEW, 1);
        set_offline(-1);
        world.begin_ns = monotonic_ns();
        step();
        step();
        if (world.level == 0)
            assert_times(FEW, 2);
    }
    end();
}

/* At the same time the other CPU gets another ring, for deeper stacks, so the number of rings is
 * the same. Samples that another profiler spoils are still corrected on that CPU. */
static void test_rings_of_other_cpus_are_told_apart(void **state)
{
    (void)state;
    step_fn *const steps[] = {touch_few, drop_all, touch_deep, drop_all, touch_few, NULL};
    int cpus[2];
    find_cpus(cpus);
    begin(steps);
    pid_t other = -1;
    if (is_by_page()) {
        size_t stack_bytes = faults_stack_bytes(world.faults);
        pin_child(cpus[1]);
        step();
        rest();
        step();
        assert_int_equal(snapshot_pool_new(&world.snapshots), 0);
        step_unread();
        set_offline(cpus[1]);
        offline_cpu = -1;
        assert_true(faults_stack_bytes(world.faults) > stack_bytes || world.level > 0);
        snapshot_pool_free(world.snapshots);
        world.snapshots = NULL;
        other = start_other_profiler();
    }
    if (other >= 0) {
        pin_child(cpus[0]);
        step_unread();
        step_unread();
        take_all();
        if (world.level == 0)
            assert_times(FEW, 3);
        assert_int_equal(faults_lost(world.faults), 0);
        kill(other, SIGKILL);
        waitpid(other, NULL, 0);
    }
    end();
}

#define PROCESSES_MANY 5000
#define NO_PROCESS_FROM (PROCESS_IDS - PROCESSES_MANY) /* hardly any machine has this many */

static void follow_many(void)
{
    for (pid_t pid = NO_PROCESS_FROM; pid < (pid_t)PROCESS_IDS; pid++) {
        const struct process process = {.pid = pid, .proc_fd = -1};
        assert_int_equal(faults_follow(world.faults, &process), 0);
    }
}

static void test_very_many_processes(void **state)
{
    (void)state;
    step_fn *const steps[] = {touch_few, NULL};
    begin(steps);
    if (is_by_page()) {
        follow_many();
        step();
        if (world.level == 0)
            assert_times(FEW, 1);
        assert_int_equal(faults_lost(world.faults), 0);
    }
    end();
}

/* This test must come last. */
static void test_by_number(void **state)
{
    (void)state;
    step_fn *const steps[] = {touch_by_parts, share, NULL};
    refuse_events_of_cpus();
    begin(steps);
    assert_int_not_equal(faults_choice(world.faults), FAULTS_BY_PAGE);
    assert_true(faults_filter_refusal(world.faults) < 0);
    assert_true(faults_are_rough(world.faults));
    step();
    uint64_t weight = total();
    /* Losses at the end are not known to be faults. */
    unsigned percent = faults_lost(world.faults) ? 50 : 10;
    assert_in_range(weight, PAGES * (100 - percent) / 100, PAGES * (100 + percent) / 100);
    step();
    assert_in_range(total() - weight, 0, PAGES / 10); /* copies are not new pages */
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_faults_are_all_told),
        cmocka_unit_test(test_many_faults_are_chosen_by_page),
        cmocka_unit_test(test_a_flood_is_not_looked_at),
        cmocka_unit_test(test_weights_add_up),
        cmocka_unit_test(test_only_new_pages_count),
        cmocka_unit_test(test_faults_of_system_calls),
        cmocka_unit_test(test_stacks),
        cmocka_unit_test(test_another_profiler_changes_nothing),
        cmocka_unit_test(test_a_cpu_that_has_ended_is_read_and_comes_back),
        cmocka_unit_test(test_rings_of_other_cpus_are_told_apart),
        cmocka_unit_test(test_very_many_processes),
        cmocka_unit_test(test_by_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
