/* Real threads of children, which wait for the test at pipes. Skipped if the kernel does not permit
 * BPF programs. What each child does is checked with ptrace, and in its memory. */
#include "unit.h"
#include "base/clock.h"
#include "observe/bpf/perf_filter.h"
#include "observe/bpf/process_set.h"
#include "observe/bpf/switch_record.h"
#include "observe/events.h"
#include "proc/activity.h"

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#define HANGS_NS 50000000000ull
#define MS 1000000ull
#define SLEEPS 200
#define READ_BYTES_MAX 512
#define SKIPPED 77

struct world {
    struct switch_record *record;
    pid_t pid;
    int to_child; /* what the child reads */
};

/* Shared with the children. */
static struct shared {
    _Atomic pid_t tids[16];
    atomic_uint ready, ended;
    _Alignas(2048) unsigned char memory[1024];
} * shared;

typedef void child_fn(int from_test);

/* ---- Worlds ---- */

static int open_record(const struct switch_options *options, struct switch_record **ret_record)
{
    int err = switch_record_open(options, ret_record);
    if (err == -EPERM || err == -ENOTSUP || err == -ENOSYS)
        skip();
    return err;
}

static void rest(void)
{
    const struct timespec soon = {0, 200000};
    nanosleep(&soon, NULL);
}

static bool is_asleep(pid_t pid)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true; /* /proc does not show its namespace */
    ssize_t bytes = read(fd, text, sizeof text - 1);
    close(fd);
    assert_true(bytes > 0);
    text[bytes] = '\0';
    const char *name_end = strrchr(text, ')'); /* proc_pid_stat(5) */
    return name_end && !strncmp(name_end, ") S", 3);
}

/* The child begins after reading a byte. It sleeps until then, because before Linux 6.4 a thread is
 * only recorded once it has been woken. */
static pid_t start_child(child_fn *run, int *ret_to_child)
{
    int fds[2];
    /* So that the stack is at least as large as the largest copy. */
    volatile char room[SWITCH_STACK_BYTES_MAX];
    (void)memset((char *)room, 0, sizeof room);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(100);
        close(fds[1]);
        if (read(fds[0], &byte, 1) == 1)
            run(fds[0]);
        _exit(0);
    }
    assert_true(pid > 0);
    close(fds[0]);
    while (!is_asleep(pid))
        rest();
    *ret_to_child = fds[1];
    return pid;
}

static void let_child(const struct world *world, size_t bytes)
{
    static const char zeros[READ_BYTES_MAX];
    assert_int_equal(write(world->to_child, zeros, bytes), bytes);
}

static struct world setup(const struct switch_options *options, child_fn *run)
{
    struct world world = {0};
    assert_int_equal(open_record(options, &world.record), 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    world.pid = start_child(run, &world.to_child);
    return world;
}

static struct world setup_followed(const struct switch_options *options, child_fn *run)
{
    struct world world = setup(options, run);
    assert_int_equal(switch_record_follow(world.record, world.pid), 0);
    let_child(&world, 1);
    return world;
}

static void end_child(pid_t pid, int to_child)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(to_child);
}

static void teardown(struct world *world)
{
    end_child(world->pid, world->to_child);
    switch_record_free(world->record);
    munmap(shared, sizeof *shared);
}

static bool sleeps_in(const struct slot_view *view, long call, uint64_t argument)
{
    const struct departure *departure = &view->departure;
    return !departure->in_ns && departure->state == THREAD_SLEEPING &&
           departure->syscall_number == call && departure->registers.call_arguments[2] == argument;
}

/* Waits until the thread sleeps in this call with this third argument, and has not moved. */
static void await_sleep(const struct world *world, pid_t tid, long call, uint64_t argument,
                        struct slot_view *ret_view)
{
    uint64_t until_ns = monotonic_ns() + HANGS_NS;
    const struct departure *departure = &ret_view->departure;
    int err;
    while ((err = switch_record_read(world->record, tid, ret_view)) ||
           !sleeps_in(ret_view, call, argument)) {
        if (monotonic_ns() > until_ns)
            fail_msg("read: %d; departure %llu, state %d, call %ld with %llu, back at %llu", err,
                     (unsigned long long)departure->number, departure->state,
                     departure->syscall_number,
                     (unsigned long long)departure->registers.call_arguments[2],
                     (unsigned long long)departure->in_ns);
        rest();
    }
}

static void await_count(const atomic_uint *count, unsigned wanted)
{
    uint64_t until_ns = monotonic_ns() + HANGS_NS;
    while (atomic_load(count) < wanted) {
        assert_true(monotonic_ns() < until_ns);
        rest();
    }
}

static void await_time(uint64_t at_ns)
{
    while (monotonic_ns() <= at_ns)
        rest();
}

/* ---- Ticks ---- */

#define PERIOD_NS 4000000000u
#define GAP_NS (PERIOD_NS / 8 * 7) /* the minimum distance to other ticks */

static bool is_apart(const struct ticks *ticks, uint64_t period)
{
    uint64_t at_ns = ticks_due_ns(ticks, period);
    return ticks_due_ns(ticks, period + 1) - at_ns >= GAP_NS &&
           (period == 0 || at_ns - ticks_due_ns(ticks, period - 1) >= GAP_NS);
}

/* Tick `number` is at that time, and no other tick is near. */
static void tick_comes(const struct world *world, uint64_t number, uint64_t at_ns)
{
    struct ticks ticks = {.period_ns = PERIOD_NS};
    while (!is_apart(&ticks, number - 1))
        ticks.seed++;
    ticks.start_ns = at_ns - ticks_due_ns(&ticks, number - 1);
    switch_record_set_ticks(world->record, &ticks);
}

/* ---- Children ---- */

/* Sleeps in read for 1 byte, then for 2, and so on, each time with another stack. */
__attribute__((noinline)) static void sleep_deep(int fd, unsigned number)
{
    volatile char deep[6000];
    char buffer[READ_BYTES_MAX];
    for (unsigned i = 0; i < sizeof deep; i++)
        deep[i] = (char)(i * number);
    if (read(fd, buffer, number) != (ssize_t)number)
        _exit(1);
    (void)deep[number];
}

static void sleep_often(int fd)
{
    for (unsigned i = 1; i <= READ_BYTES_MAX; i++)
        sleep_deep(fd, i);
}

/* Only pages in the page table can be read. */
static void sleep_with_memory(int fd)
{
    *(volatile unsigned char *)shared->memory = 0;
    sleep_often(fd);
}

/* Computes, and leaves its CPU now and then. */
static void compute_and_rest(int fd)
{
    static const struct timespec moment = {0, 1000};
    (void)fd;
    *(volatile unsigned char *)shared->memory = 0; /* so that the page is in its page table */
    atomic_store(&shared->ready, 1);
    for (volatile unsigned i = 0;; i++) {
        if (i % 10000000 == 0)
            nanosleep(&moment, NULL);
    }
}

#define FUTEX_OFFSET 256u

/* After each byte, it waits for a futex for a moment. */
static void wait_for_futexes(int fd)
{
    static const struct timespec moment = {0, 20000000};
    uint32_t *word = (uint32_t *)(shared->memory + FUTEX_OFFSET);
    char byte;
    while (read(fd, &byte, 1) == 1)
        syscall(SYS_futex, word, FUTEX_WAIT, *word, &moment, NULL, 0);
}

static void read_bytes(int fd)
{
    char byte;
    while (read(fd, &byte, 1) == 1) {
    }
}

static void compute(int fd)
{
    (void)fd;
    atomic_store(&shared->ready, 1);
    for (volatile unsigned i = 0;; i++) {
    }
}

/* After each byte it computes until the test says so. */
static void compute_between_reads(int fd)
{
    char byte;
    while (read(fd, &byte, 1) == 1) {
        unsigned turn = atomic_fetch_add(&shared->ready, 1);
        while (atomic_load(&shared->ended) <= turn) {
        }
    }
}

static int many_fd;

static void *sleep_in_thread(void *argument)
{
    shared->tids[(uintptr_t)argument] = (pid_t)syscall(SYS_gettid);
    atomic_fetch_add(&shared->ready, 1);
    read_bytes(many_fd);
    return NULL;
}

/* Reads with this frame pointer. */
static long read_with(uint64_t frame_pointer, int fd, void *buffer, size_t bytes)
{
#ifdef __x86_64__
    long result = SYS_read;
    __asm__ volatile("push %%rbp; mov %[fp], %%rbp; syscall; pop %%rbp"
                     : "+a"(result)
                     : [fp] "r"(frame_pointer), "D"(fd), "S"(buffer), "d"(bytes)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long result __asm__("x0") = fd;
    register void *second __asm__("x1") = buffer;
    register size_t third __asm__("x2") = bytes;
    register long call __asm__("x8") = SYS_read;
    __asm__ volatile("mov x9, x29; mov x29, %[fp]; svc #0; mov x29, x9"
                     : "+r"(result)
                     : [fp] "r"(frame_pointer), "r"(second), "r"(third), "r"(call)
                     : "x9", "memory");
    return result;
#endif
}

/* Sleeps in read for 1 byte, then for 2, and so on. Its frame pointers lead away from its stack,
 * first directly and then through the stack. */
static void sleep_with_two_stacks(int fd)
{
    static char buffer[READ_BYTES_MAX];
    uint64_t away = (uintptr_t)shared->memory, here[2] = {away, 0}, below[2] = {0};
    below[0] = (uintptr_t)here;
    shared->memory[0] = 0; /* so that the page is in its page table */
    for (unsigned i = 1; i <= READ_BYTES_MAX; i++) {
        uint64_t first = i == 1 ? away : (uintptr_t)below;
        __asm__ volatile("" : : "r"(here), "r"(below) : "memory");
        if (read_with(first, fd, buffer, i) != (long)i)
            _exit(1);
    }
}

#define SMALL_STACK_BYTES (256u << 10) /* twice PTHREAD_STACK_MIN of aarch64 */

/* Sleeps in read for 1 byte, then for 2, and so on, each time 1,000 bytes deeper. */
static void *sleep_ever_deeper(void *argument)
{
    static char buffer[READ_BYTES_MAX];
    shared->tids[0] = (pid_t)syscall(SYS_gettid);
    atomic_store(&shared->ready, 1);
    for (unsigned i = 1; i < 8; i++) {
        volatile char *deep = alloca(1000);
        deep[0] = 1;
        if (read(many_fd, buffer, i) != (ssize_t)i)
            _exit(1);
    }
    return argument;
}

/* Nothing is mapped behind the thread's stack. The child reports the end of the stack. */
static void sleep_near_the_end(int fd)
{
    pthread_attr_t attributes;
    pthread_t thread;
    char *stack = mmap(NULL, 2 * SMALL_STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t end = (uintptr_t)stack + SMALL_STACK_BYTES;
    many_fd = fd;
    memcpy(shared->memory, &end, sizeof end);
    if (stack == MAP_FAILED || munmap(stack + SMALL_STACK_BYTES, SMALL_STACK_BYTES) ||
        pthread_attr_init(&attributes) ||
        pthread_attr_setstack(&attributes, stack, SMALL_STACK_BYTES) ||
        pthread_create(&thread, &attributes, sleep_ever_deeper, NULL))
        _exit(1);
    for (;;)
        pause();
}

static void have_ten_threads(int fd)
{
    pthread_t threads[10];
    many_fd = fd;
    for (uintptr_t i = 0; i < 10; i++)
        pthread_create(&threads[i], NULL, sleep_in_thread, (void *)i);
    for (;;)
        pause();
}

static void *yield_once(void *argument)
{
    const struct timespec shortly = {0, 1};
    nanosleep(&shortly, NULL);
    return argument;
}

#define BIRTHS 5000
#define BIRTHS_AT_ONCE 10

static void bear_threads(int fd)
{
    for (unsigned born = 0; born < BIRTHS; born += BIRTHS_AT_ONCE) {
        pthread_t threads[BIRTHS_AT_ONCE];
        for (unsigned i = 0; i < BIRTHS_AT_ONCE; i++) {
            if (pthread_create(&threads[i], NULL, yield_once, NULL))
                _exit(1);
        }
        for (unsigned i = 0; i < BIRTHS_AT_ONCE; i++)
            pthread_join(threads[i], NULL);
    }
    atomic_store(&shared->ended, 1);
    sleep_often(fd);
}

static void *execute(void *argument)
{
    dup2(many_fd, 0);
    execl("/bin/cat", "cat", (char *)NULL);
    return argument;
}

static void execute_in_thread(int fd)
{
    pthread_t thread;
    many_fd = fd;
    pthread_create(&thread, NULL, execute, NULL);
    for (;;)
        pause();
}

/* ---- Sleepers ---- */

static void check_by_ptrace(pid_t tid, const struct registers *found)
{
    struct registers registers;
    assert_int_equal(ptrace(PTRACE_SEIZE, tid, NULL, NULL), 0);
    assert_int_equal(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL), 0);
    assert_int_equal(waitpid(tid, NULL, __WALL), tid);
    assert_int_equal(registers_read_stopped(tid, &registers), 0);
    assert_int_equal(ptrace(PTRACE_DETACH, tid, NULL, NULL), 0);
    /* All except the register for the call's result. */
    assert_int_equal(found->known | 1, (1ull << architecture.register_count) - 1);
    for (unsigned i = 1; i < architecture.register_count; i++)
        assert_int_equal(found->values[i], registers.values[i]);
}

/* How often the thread has got a CPU, according to the kernel. */
static uint64_t switches_of(pid_t pid)
{
    char path[64];
    struct activity activity;
    snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    char line[128] = "";
    assert_true(read(fd, line, sizeof line - 1) > 0 && activity_parse(line, &activity));
    close(fd);
    return activity.switches;
}

static void test_registers_are_those_of_ptrace(void **state)
{
    (void)state;
    const struct switch_options options = {0};
    struct world world = setup_followed(&options, sleep_often);
    uint64_t last_number = 0;
    for (unsigned i = 1; i <= SLEEPS; i++) {
        struct slot_view view;
        await_sleep(&world, world.pid, SYS_read, i, &view);
        assert_int_equal(view.departure.tid, world.pid);
        assert_int_equal(view.departure.process_id, world.pid);
        assert_true(view.departure.number > last_number);
        last_number = view.departure.number;
        assert_true(view.departure.out_ns < monotonic_ns());
        assert_int_equal(view.departure.runnable_ns, 0);
        assert_true(switch_record_is_unmoved(world.record, &view));
        assert_int_equal(view.departure.switches, switches_of(world.pid));
        check_by_ptrace(world.pid, &view.departure.registers);
        let_child(&world, i);
    }
    teardown(&world);
}

static void test_a_thread_that_was_woken_has_moved(void **state)
{
    (void)state;
    const struct switch_options options = {0};
    struct world world = setup_followed(&options, sleep_often);
    struct slot_view view, other;
    await_sleep(&world, world.pid, SYS_read, 1, &view);
    let_child(&world, 1);
    await_sleep(&world, world.pid, SYS_read, 2, &other);
    assert_false(switch_record_is_unmoved(world.record, &view));
    assert_int_equal(view.slot, other.slot);
    assert_int_equal(view.generation, other.generation);
    assert_int_equal(view.departure.start_ns, other.departure.start_ns);
    assert_true(other.departure.start_ns < boot_ns());
    assert_true(other.departure.start_ns + HANGS_NS > boot_ns());
    teardown(&world);
}

/* ---- Ticks ---- */

struct taken {
    unsigned count;
    struct past_departure last;
    unsigned char stack[SWITCH_STACK_BYTES_MAX], other[SWITCH_OTHER_BYTES];
    bool has_futex;
    unsigned char futex[SWITCH_FUTEX_BYTES];
    struct switch_frame frames[SWITCH_FRAMES_MAX];
};

static int take(void *argument, const struct past_departure *past)
{
    struct taken *taken = argument;
    taken->count++;
    taken->last = *past;
    assert_true(past->stack_bytes <= sizeof taken->stack);
    memcpy(taken->stack, past->stack, past->stack_bytes);
    assert_true(past->other_bytes <= sizeof taken->other);
    memcpy(taken->other, past->other_stack, past->other_bytes);
    assert_true(past->frame_count <= SWITCH_FRAMES_MAX);
    memcpy(taken->frames, past->frames, past->frame_count * sizeof *taken->frames);
    taken->has_futex = past->futex != NULL;
    if (past->futex)
        memcpy(taken->futex, past->futex, sizeof taken->futex);
    return 0;
}

static struct taken drain(const struct world *world)
{
    struct taken taken = {0};
    int count = switch_record_drain(world->record, take, &taken);
    assert_int_equal(count, taken.count);
    return taken;
}

/* The thread sleeps for `argument` bytes at these ticks, and then for one more. */
static struct slot_view thread_sleeps_through(const struct world *world, pid_t tid,
                                              unsigned argument, uint64_t first_tick,
                                              uint64_t last_tick)
{
    struct slot_view view, after;
    await_sleep(world, tid, SYS_read, argument, &view);
    for (uint64_t tick = first_tick; tick <= last_tick; tick++) {
        uint64_t at_ns = monotonic_ns() + MS;
        tick_comes(world, tick, at_ns);
        await_time(at_ns);
    }
    assert_true(switch_record_is_unmoved(world->record, &view));
    let_child(world, argument);
    await_sleep(world, tid, SYS_read, argument + 1, &after);
    return view;
}

static struct slot_view sleep_through(const struct world *world, unsigned argument,
                                      uint64_t first_tick, uint64_t last_tick)
{
    return thread_sleeps_through(world, world->pid, argument, first_tick, last_tick);
}

static void read_memory(pid_t pid, uint64_t address, unsigned char *buffer, size_t bytes)
{
    const struct iovec local = {buffer, bytes}, remote = {(void *)(uintptr_t)address, bytes};
    assert_int_equal(process_vm_readv(pid, &local, 1, &remote, 1, 0), bytes);
}

static void check_stack(const struct world *world, uint32_t bytes)
{
    static unsigned char memory[SWITCH_STACK_BYTES_MAX];
    struct slot_view view;
    await_sleep(world, world->pid, SYS_read, 1, &view);
    read_memory(world->pid, registers_sp(&view.departure.registers), memory, bytes);
    uint64_t from_ns = monotonic_ns();
    sleep_through(world, 1, 5, 5);
    struct taken taken = drain(world);
    const struct past_departure *past = &taken.last;
    assert_int_equal(taken.count, 1);
    assert_int_equal(past->last_tick, 5);
    assert_int_equal(past->slot, view.slot);
    assert_int_equal(past->generation, view.generation);
    assert_int_equal(past->departure.number, view.departure.number);
    assert_int_equal(past->departure.out_ns, view.departure.out_ns);
    assert_int_equal(past->departure.state, THREAD_SLEEPING);
    assert_memory_equal(&past->departure.registers, &view.departure.registers,
                        sizeof view.departure.registers);
    assert_true(past->departure.runnable_ns > from_ns);
    assert_true(past->departure.in_ns >= past->departure.runnable_ns);
    assert_true(past->departure.in_ns < monotonic_ns());
    assert_int_equal(past->stack_bytes, bytes);
    assert_memory_equal(taken.stack, memory, bytes);
}

static void test_a_short_sleep_at_a_tick_is_told_with_its_stack(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {SWITCH_STACK_BYTES_MAX, 1024, 0};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct switch_options options = {.stack_bytes = sizes[i]};
        struct world world = setup_followed(&options, sleep_often);
        check_stack(&world, sizes[i] ? sizes[i] : SWITCH_STACK_BYTES_DEFAULT);
        assert_int_equal(drain(&world).count, 0);
        teardown(&world);
    }
}

static void test_a_wait_for_a_futex_is_told_with_its_memory(void **state)
{
    (void)state;
    const struct switch_options options = {.stack_bytes = 512};
    struct world world = setup_followed(&options, wait_for_futexes);
    uint64_t tick = 0, until_ns = monotonic_ns() + HANGS_NS;
    struct taken taken = {0};
    for (size_t i = 0; i < sizeof shared->memory; i++)
        shared->memory[i] = (unsigned char)(i * 7);
    while (!taken.count || taken.last.departure.syscall_number != SYS_futex) {
        assert_true(monotonic_ns() < until_ns);
        tick_comes(&world, ++tick, monotonic_ns() + 5 * MS);
        let_child(&world, 1);
        await_time(monotonic_ns() + 6 * MS);
        taken = drain(&world);
    }
    assert_true(taken.has_futex && taken.last.has_futex_before);
    assert_int_equal(taken.last.departure.registers.call_arguments[0],
                     (uintptr_t)shared->memory + FUTEX_OFFSET);
    assert_memory_equal(taken.futex, shared->memory + FUTEX_OFFSET - SWITCH_FUTEX_BYTES_BEFORE,
                        SWITCH_FUTEX_BYTES);
    teardown(&world);
}

/* Reads the record's copy of the futex for which the child waits, while it still does. */
static bool read_futex(const struct world *world, unsigned char futex[SWITCH_FUTEX_BYTES])
{
    uint64_t until_ns = monotonic_ns() + HANGS_NS;
    struct slot_view view;
    bool has_before;
    do {
        assert_true(monotonic_ns() < until_ns);
        if (switch_record_read(world->record, world->pid, &view))
            return false;
    } while (view.departure.syscall_number != SYS_futex);
    shared->memory[FUTEX_OFFSET - 8]++; /* as if the owner released the lock */
    return switch_record_read_futex(world->record, &view, futex, &has_before) && has_before;
}

static void test_the_memory_of_a_futex_is_known_before_its_wait_is_over(void **state)
{
    (void)state;
    const struct switch_options options = {.stack_bytes = 512};
    struct world world = setup_followed(&options, wait_for_futexes);
    unsigned char before[SWITCH_FUTEX_BYTES], futex[SWITCH_FUTEX_BYTES];
    uint64_t until_ns = monotonic_ns() + HANGS_NS;
    bool has_read = false;
    while (!has_read) {
        assert_true(monotonic_ns() < until_ns);
        memcpy(before, shared->memory + FUTEX_OFFSET - SWITCH_FUTEX_BYTES_BEFORE, sizeof before);
        let_child(&world, 1);
        has_read = read_futex(&world, futex);
    }
    assert_memory_equal(futex, before, sizeof before);
    teardown(&world);
}

static void check_stack_bytes(const struct world *world, unsigned argument, uint64_t tick,
                              size_t bytes)
{
    sleep_through(world, argument, tick, tick);
    struct taken taken = drain(world);
    assert_int_equal(taken.count, 1);
    assert_int_equal(taken.last.stack_bytes, bytes);
}

static void test_the_kernels_functions_of_a_sleep_are_told_where_wanted(void **state)
{
    (void)state;
    for (int are_wanted = 0; are_wanted < 2; are_wanted++) {
        const struct switch_options options = {.stack_bytes = 512, .keeps_chains = are_wanted};
        struct world world = setup_followed(&options, sleep_often);
        sleep_through(&world, 1, 5, 5);
        struct taken taken = drain(&world);
        assert_int_equal(taken.count, 1);
        /* At least those of the switch, the call and its entry. */
        assert_true(are_wanted ? taken.last.chain_depth > 3 : taken.last.chain_depth == 0);
        for (unsigned i = 0; i < taken.last.chain_depth; i++)
            assert_true(taken.last.chain[i] >> 63);
        teardown(&world);
    }
}

static void test_stacks_are_copied_shortly_before_a_tick(void **state)
{
    (void)state;
    const struct switch_options options = {
        .stack_bytes = 512, .stack_window_ns = GAP_NS / 2, .stack_pause_ns = UINT64_MAX};
    struct world world = setup(&options, sleep_often);
    struct slot_view view;
    tick_comes(&world, 1, monotonic_ns() + 1000 * HANGS_NS);
    assert_int_equal(switch_record_follow(world.record, world.pid), 0);
    let_child(&world, 1);
    check_stack_bytes(&world, 1, 2, 0);
    /* When it began to sleep for two bytes, the tick before had just passed. */
    await_sleep(&world, world.pid, SYS_read, 2, &view);
    tick_comes(&world, 3, monotonic_ns() + GAP_NS / 2);
    let_child(&world, 2);
    check_stack_bytes(&world, 3, 4, 512);
    teardown(&world);
}

/* A thread that has not left its CPU for long may stay asleep until after a tick. */
static void test_stacks_are_copied_after_a_pause(void **state)
{
    (void)state;
    const struct switch_options options = {
        .stack_bytes = 512, .stack_window_ns = 1, .stack_pause_ns = 5000 * MS};
    struct world world = setup(&options, sleep_often);
    tick_comes(&world, 1, monotonic_ns() + 1000 * HANGS_NS);
    assert_int_equal(switch_record_follow(world.record, world.pid), 0);
    let_child(&world, 1);
    check_stack_bytes(&world, 1, 2, 512); /* its first departure */
    check_stack_bytes(&world, 2, 3, 0);
    teardown(&world);
}

static void test_the_reader_says_how_much_of_a_stack_it_wants(void **state)
{
    (void)state;
    const struct switch_options options = {.stack_bytes = 512};
    struct world world = setup_followed(&options, sleep_often);
    sleep_through(&world, 1, 1, 1);
    struct taken taken = drain(&world);
    assert_int_equal(taken.count, 1);
    static const size_t sizes[] = {64, 4000, SWITCH_STACK_BYTES_MAX + 1};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t bytes = sizes[i] < SWITCH_STACK_BYTES_MAX ? sizes[i] : SWITCH_STACK_BYTES_MAX;
        switch_record_want_stack(world.record, taken.last.slot, taken.last.generation + 2, 128,
                                 false);
        switch_record_want_stack(world.record, taken.last.slot, taken.last.generation, sizes[i],
                                 false);
        sleep_through(&world, 2 + 2 * i, 2 + 2 * i, 2 + 2 * i); /* it had left before */
        drain(&world);
        check_stack_bytes(&world, 3 + 2 * i, 3 + 2 * i, bytes);
    }
    teardown(&world);
}

static void test_the_stack_that_a_thread_has_left(void **state)
{
    (void)state;
    const struct switch_options options = {.stack_bytes = SWITCH_STACK_BYTES_MAX};
    struct world world = setup_followed(&options, sleep_with_two_stacks);
    for (size_t i = 0; i < sizeof shared->memory; i++)
        shared->memory[i] = (unsigned char)(i * 11);
    struct slot_view view = sleep_through(&world, 1, 1, 1);
    assert_int_equal(drain(&world).last.other_bytes, 0); /* it was not wanted */
    for (unsigned i = 2; i < 6; i++) {
        switch_record_want_stack(world.record, view.slot, view.generation, SWITCH_STACK_BYTES_MAX,
                                 true);
        sleep_through(&world, i, i, i);
        struct taken taken = drain(&world);
        if (i == 2)
            continue; /* it had left before */
        assert_int_equal(taken.count, 1);
        assert_int_equal(taken.last.stack_bytes, SWITCH_OTHER_OFFSET);
        assert_int_equal(taken.last.other_address, (uintptr_t)shared->memory - 1024);
        assert_true(taken.last.other_bytes >= 1024 + sizeof shared->memory);
        assert_memory_equal(taken.other + 1024, shared->memory, sizeof shared->memory);
        assert_false(taken.last.has_one_stack);
    }
    teardown(&world);
}

/* Frames as an interpreter might keep them, with few bytes between the fields. */
static const struct python_layout small_layout = {
    .thread_native_id = 0,
    .thread_frame = 8,
    .noted_frame = 0,
    .frame_code = 0,
    .frame_previous = 8,
    .frame_instruction = 16,
    .frame_owner = 24,
    .frame_is_entry = 25,
};

static void put_word(size_t at, uint64_t word)
{
    memcpy(&shared->memory[at], &word, sizeof word);
}

/* Writes a thread state, the word that notes its frame, and two frames. */
static void put_python(pid_t tid)
{
    uint64_t here = (uintptr_t)shared->memory;
    memset(shared->memory, 0, sizeof shared->memory);
    put_word(0, (uint64_t)tid);
    put_word(8, here + 16);
    put_word(16, here + 24);
    put_word(24, 0x1000);
    put_word(32, here + 56);
    put_word(40, 0x1004);
    put_word(56, 0x2000);
    put_word(72, 0x2008);
    shared->memory[80] = 3;
    shared->memory[81] = 1;
}

static struct taken sleep_with_python(const struct world *world, unsigned number)
{
    sleep_through(world, number, number, number);
    struct taken taken = drain(world);
    assert_int_equal(taken.count, 1);
    return taken;
}

static void test_frames_of_python(void **state)
{
    (void)state;
    const struct switch_options options = {.stack_bytes = SWITCH_STACK_BYTES_MAX};
    struct world world = setup_followed(&options, sleep_with_memory);
    struct taken taken = sleep_with_python(&world, 1);
    assert_int_equal(taken.last.frames_state, SWITCH_FRAMES_NONE);
    put_python(world.pid);
    const struct python_thread thread = {&small_layout, (uintptr_t)shared->memory, world.pid};
    switch_record_want_python(world.record, taken.last.slot, taken.last.generation + 2, &thread);
    sleep_with_python(&world, 2); /* it had left before */
    taken = sleep_with_python(&world, 3);
    assert_int_equal(taken.last.frames_state, SWITCH_FRAMES_NONE); /* that was another thread's */
    switch_record_want_python(world.record, taken.last.slot, taken.last.generation, &thread);
    sleep_with_python(&world, 4);
    taken = sleep_with_python(&world, 5);
    assert_int_equal(taken.last.frames_state, SWITCH_FRAMES_WHOLE);
    assert_int_equal(taken.last.frame_count, 2);
    const struct switch_frame truth[] = {{0x1000, 0x1004, 0, 0}, {0x2000, 0x2008, 3, 1}};
    assert_memory_equal(taken.frames, truth, sizeof truth);
    assert_true(taken.last.stack_bytes > 0 && taken.last.stack_bytes <= SWITCH_OTHER_OFFSET);
    put_word(64, (uintptr_t)shared->memory + 24); /* a circle */
    sleep_with_python(&world, 6);
    taken = sleep_with_python(&world, 7);
    assert_int_equal(taken.last.frames_state, SWITCH_FRAMES_CUT);
    assert_int_equal(taken.last.frame_count, SWITCH_FRAMES_MAX);
    put_word(64, 8);
    sleep_with_python(&world, 8);
    taken = sleep_with_python(&world, 9);
    assert_int_equal(taken.last.frames_state, SWITCH_FRAMES_UNREADABLE);
    put_python(world.pid + 1); /* its memory is another thread's by now */
    sleep_with_python(&world, 10);
    taken = sleep_with_python(&world, 11);
    assert_int_equal(taken.last.frames_state, SWITCH_FRAMES_UNREADABLE);
    assert_int_equal(taken.last.frame_count, 0);
    switch_record_want_python(world.record, taken.last.slot, taken.last.generation,
                              &(struct python_thread){0});
    sleep_with_python(&world, 12);
    taken = sleep_with_python(&world, 13);
    assert_int_equal(taken.last.frames_state, SWITCH_FRAMES_NONE);
    teardown(&world);
}

static void begin_samples(struct filter *filter, struct events *events)
{
    *events = (struct events){
        .attr = {.type = PERF_TYPE_SOFTWARE,
                 .config = PERF_COUNT_SW_CPU_CLOCK,
                 .sample_period = MS,
                 .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
                 .disabled = 1},
        .ring_bytes = 1u << 18,
        .ring_bytes_min = 1u << 14,
        .filter = filter,
    };
    assert_int_equal(filter_open(filter), 0);
    assert_int_equal(events_update_cpus(events), 0);
}

/* The frames of a running thread are copied at its sample. */
static void test_frames_of_python_at_samples(void **state)
{
    (void)state;
    const struct switch_options options = {.stack_bytes = SWITCH_STACK_BYTES_MAX};
    struct world world = setup_followed(&options, compute_and_rest);
    struct filter filter;
    struct events events;
    struct slot_view view;
    struct taken taken = {0};
    await_count(&shared->ready, 1);
    put_python(world.pid);
    const struct python_thread thread = {&small_layout, (uintptr_t)shared->memory, world.pid};
    begin_samples(&filter, &events);
    assert_int_equal(events_follow(&events, world.pid), 0);
    assert_int_equal(filter_set_next(&filter, switch_record_sample_program(world.record)), 0);
    uint64_t until_ns = monotonic_ns() + HANGS_NS;
    while (switch_record_read(world.record, world.pid, &view))
        assert_true(monotonic_ns() < until_ns);
    assert_false(switch_record_has_python(world.record, world.pid));
    assert_int_equal(drain(&world).count, 0);
    switch_record_want_python(world.record, view.slot, view.generation, &thread);
    assert_true(switch_record_has_python(world.record, world.pid));
    uint64_t from_ns = monotonic_ns();
    while (!taken.count) {
        assert_true(monotonic_ns() < until_ns);
        taken = drain(&world);
    }
    const struct switch_frame truth[] = {{0x1000, 0x1004, 0, 0}, {0x2000, 0x2008, 3, 1}};
    assert_int_equal(taken.last.kind, SWITCH_MESSAGE_SAMPLE);
    assert_int_equal(taken.last.departure.tid, world.pid);
    assert_int_equal(taken.last.departure.process_id, world.pid);
    assert_true(taken.last.departure.out_ns > from_ns - MS);
    assert_int_equal(taken.last.frames_state, SWITCH_FRAMES_WHOLE);
    assert_int_equal(taken.last.frame_count, 2);
    assert_memory_equal(taken.frames, truth, sizeof truth);
    assert_int_equal(filter_set_next(&filter, -1), 0);
    rest();
    drain(&world);
    rest();
    assert_int_equal(drain(&world).count, 0);
    events_free(&events);
    filter_close(&filter);
    teardown(&world);
}

/* Memory behind the end can't be read, and is not needed. */
static void test_a_stack_is_copied_up_to_its_end(void **state)
{
    (void)state;
    const struct switch_options options = {.stack_bytes = SWITCH_STACK_BYTES_MAX};
    struct world world = setup_followed(&options, sleep_near_the_end);
    uint64_t end;
    await_count(&shared->ready, 1);
    memcpy(&end, shared->memory, sizeof end);
    for (unsigned i = 1; i < 7; i++) {
        struct slot_view view = thread_sleeps_through(&world, shared->tids[0], i, i, i);
        struct taken taken = drain(&world);
        uint64_t bytes = end - registers_sp(&view.departure.registers);
        assert_int_equal(taken.count, 1);
        assert_int_equal(taken.last.stack_bytes,
                         bytes < SWITCH_STACK_BYTES_MAX ? bytes : SWITCH_STACK_BYTES_MAX);
    }
    teardown(&world);
}

/* Ticks also come while the thread has just woken and waits for a CPU. */
static int take_longest(void *argument, const struct past_departure *past)
{
    struct past_departure *longest = argument;
    const struct departure *departure = &past->departure, *before = &longest->departure;
    if (departure->in_ns - departure->out_ns >= before->in_ns - before->out_ns)
        *longest = *past;
    return 0;
}

/* There is one message, however late the reader is. */
static void test_one_message_for_several_ticks(void **state)
{
    (void)state;
    const struct switch_options options = {.stack_bytes = 512};
    struct world world = setup_followed(&options, sleep_often);
    struct slot_view view, after;
    await_sleep(&world, world.pid, SYS_read, 1, &view);
    const struct ticks ticks = {monotonic_ns(), MS, 17};
    switch_record_set_ticks(world.record, &ticks);
    await_time(monotonic_ns() + 50 * MS);
    let_child(&world, 1);
    await_sleep(&world, world.pid, SYS_read, 2, &after);
    struct past_departure past = {0};
    assert_true(switch_record_drain(world.record, take_longest, &past) > 0);
    assert_int_equal(past.departure.number, view.departure.number);
    assert_int_equal(past.last_tick, ticks_until(&ticks, past.departure.in_ns - 1));
    assert_true(past.last_tick >= 50);
    teardown(&world);
}

#define COMPUTING_NS (20 * MS)
#define UNSEEN_TURNS 50

static int take_if_of(void *argument, const struct past_departure *past)
{
    struct departure *wanted = argument;
    if (past->kind == SWITCH_MESSAGE_PAST && past->departure.number == wanted->number)
        *wanted = past->departure;
    return 0;
}

/* The thread gets a CPU while its process is not followed, and leaves it while it is. Returns
 * whether it had that CPU all the time, as far as we know. */
static bool return_unseen(const struct world *world, unsigned turn)
{
    struct slot_view view, after;
    await_sleep(world, world->pid, SYS_read, 1, &view);
    tick_comes(world, turn + 1, monotonic_ns() + MS);
    await_time(monotonic_ns() + 2 * MS);
    switch_record_unfollow(world->record, world->pid);
    uint64_t woken_ns = monotonic_ns();
    let_child(world, 1);
    await_count(&shared->ready, turn + 1);
    await_time(monotonic_ns() + COMPUTING_NS);
    assert_int_equal(switch_record_follow(world->record, world->pid), 0);
    /* It no longer has a slot if it lost its CPU before it was followed. */
    bool has_slot = switch_record_read(world->record, world->pid, &after) == 0;
    bool is_unseen =
        has_slot && !after.departure.in_ns && after.departure.number == view.departure.number;
    atomic_fetch_add(&shared->ended, 1);
    do {
        await_sleep(world, world->pid, SYS_read, 1, &after);
    } while (has_slot && after.departure.number == view.departure.number);
    if (!has_slot)
        return false;
    assert_true(switch_record_drain(world->record, take_if_of, &view.departure) > 0);
    assert_true(view.departure.in_ns >= woken_ns && view.departure.in_ns < after.departure.out_ns);
    return is_unseen && view.departure.in_ns < woken_ns + COMPUTING_NS / 2;
}

/* As on kernels that hide some threads. A thread that loses its CPU meanwhile has run for less time
 * than has passed, so it gets a higher priority, and if that is not enough, another try. */
static void test_a_return_that_no_switch_told_of(void **state)
{
    (void)state;
    const struct switch_options options = {0};
    struct world world = setup_followed(&options, compute_between_reads);
    unsigned turn = 0;
    sched_setscheduler(world.pid, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
    while (!return_unseen(&world, turn))
        assert_true(++turn < UNSEEN_TURNS);
    assert_true(switch_record_counters(world.record).hidden_returns > turn);
    teardown(&world);
}

static void test_a_sleep_without_a_tick_is_not_told(void **state)
{
    (void)state;
    const struct switch_options options = {.stack_bytes = 512};
    struct world world = setup_followed(&options, sleep_often);
    struct slot_view view;
    tick_comes(&world, 1, monotonic_ns());
    await_time(monotonic_ns() + MS);
    await_sleep(&world, world.pid, SYS_read, 1, &view);
    drain(&world); /* it may have begun to sleep, or have waited for a CPU, before that tick */
    let_child(&world, 1);
    await_sleep(&world, world.pid, SYS_read, 2, &view);
    drain(&world);
    tick_comes(&world, 2, monotonic_ns() + 1000 * HANGS_NS);
    for (unsigned i = 2; i < 20; i++) {
        let_child(&world, i);
        await_sleep(&world, world.pid, SYS_read, i + 1, &view);
    }
    assert_int_equal(drain(&world).count, 0);
    teardown(&world);
}

/* ---- Wakes ---- */

struct taken_wakes {
    unsigned count, past_count;
    struct past_departure last;
};

static int take_wake(void *argument, const struct past_departure *past)
{
    struct taken_wakes *taken = argument;
    bool is_wake = past->kind == SWITCH_MESSAGE_WAKE;
    /* This thread may also be followed. */
    if ((is_wake ? past->woken_tid : past->departure.tid) == gettid())
        return 0;
    taken->past_count += !is_wake;
    if (!is_wake)
        return 0;
    assert_int_equal(taken->past_count, taken->count); /* it comes before its departure */
    taken->count++;
    taken->last = *past;
    return 0;
}

/* The child has fallen asleep while it is followed: the end of its previous wait was reported. */
static struct world setup_asleep(struct slot_view *ret_view)
{
    const struct switch_options options = {.stack_bytes = 512, .tells_wakes = true};
    struct world world = setup_followed(&options, sleep_often);
    await_sleep(&world, world.pid, SYS_read, 1, ret_view);
    assert_int_equal(drain(&world).count, 1);
    return world;
}

/* The thread is woken by this one. */
static void check_wake(const struct world *world, const struct slot_view *view, bool has_stack)
{
    char name[THREAD_NAME_BYTES];
    struct taken_wakes taken = {0};
    assert_true(switch_record_drain(world->record, take_wake, &taken) > 0);
    assert_int_equal(taken.count, 1);
    const struct past_departure *wake = &taken.last;
    prctl(PR_GET_NAME, name);
    assert_int_equal(wake->woken_process_id, world->pid);
    assert_int_equal(wake->woken_tid, world->pid);
    assert_int_equal(wake->wake.departed_ns, view->departure.out_ns);
    assert_int_equal(wake->wake.thread, WAKE_BY_THREAD);
    assert_int_equal(wake->wake.process_id, getpid());
    assert_int_equal(wake->wake.tid, gettid());
    assert_string_equal(wake->wake.name, name);
    assert_true(wake->wake.chain_depth > 2);
    assert_int_equal(wake->departure.syscall_number, SYS_write);
    assert_int_equal(wake->departure.registers.call_arguments[0], world->to_child);
    assert_int_equal(wake->stack_bytes > 0, has_stack);
}

static void test_what_ends_a_wait_is_told(void **state)
{
    (void)state;
    struct slot_view view;
    struct world world = setup_asleep(&view);
    sleep_through(&world, 1, 1, 1);
    check_wake(&world, &view, false);
    /* Even if the reader has seen it asleep at all ticks. */
    await_sleep(&world, world.pid, SYS_read, 2, &view);
    tick_comes(&world, 2, monotonic_ns());
    await_time(monotonic_ns());
    switch_record_acknowledge(world.record, &view, 2);
    let_child(&world, 2);
    await_sleep(&world, world.pid, SYS_read, 3, &view);
    assert_int_equal(switch_record_counters(world.record).lost_messages, 0);
    struct taken_wakes taken = {0};
    assert_int_equal(switch_record_drain(world.record, take_wake, &taken), 1);
    assert_int_equal(taken.count, 1);
    /* The next wait is found by no tick. */
    tick_comes(&world, 3, monotonic_ns() + 1000 * HANGS_NS);
    let_child(&world, 3);
    await_sleep(&world, world.pid, SYS_read, 4, &view);
    assert_int_equal(switch_record_drain(world.record, take_wake, &taken), 0);
    teardown(&world);
}

static void test_a_waker_is_told_with_its_stack(void **state)
{
    (void)state;
    struct slot_view view, own;
    struct world world = setup_asleep(&view);
    assert_int_equal(switch_record_follow(world.record, getpid()), 0);
    while (switch_record_read(world.record, gettid(), &own))
        rest();
    tick_comes(&world, 1, monotonic_ns());
    await_time(monotonic_ns());
    let_child(&world, 1);
    check_wake(&world, &view, true);
    teardown(&world);
}

static void test_an_acknowledged_tick_is_not_told(void **state)
{
    (void)state;
    const struct switch_options options = {.stack_bytes = 512};
    struct world world = setup_followed(&options, sleep_often);
    struct slot_view view;
    await_sleep(&world, world.pid, SYS_read, 1, &view);
    tick_comes(&world, 1, monotonic_ns());
    await_time(monotonic_ns());
    switch_record_acknowledge(world.record, &view, 1);
    let_child(&world, 1);
    await_sleep(&world, world.pid, SYS_read, 2, &view);
    assert_int_equal(drain(&world).count, 0);
    /* Only the next tick of the same sleep is reported. */
    tick_comes(&world, 2, monotonic_ns());
    await_time(monotonic_ns());
    switch_record_acknowledge(world.record, &view, 2);
    sleep_through(&world, 2, 3, 3);
    struct taken taken = drain(&world);
    assert_int_equal(taken.count, 1);
    assert_int_equal(taken.last.last_tick, 3);
    teardown(&world);
}

/* Other threads may take its CPU, even at several ticks in a row. */
static void test_a_running_thread_is_not_told(void **state)
{
    (void)state;
    const struct switch_options options = {.stack_bytes = 512};
    struct world world = setup_followed(&options, compute);
    uint64_t until_ns = monotonic_ns() + HANGS_NS, ticks_ns[4] = {0};
    unsigned ran = 0;
    await_count(&shared->ready, 1);
    await_time(monotonic_ns() + MS);
    drain(&world);
    for (uint64_t tick = 1; ran == 0; tick++) {
        uint64_t at_ns = monotonic_ns() + MS;
        assert_true(at_ns < until_ns);
        ticks_ns[tick % 4] = at_ns;
        tick_comes(&world, tick, at_ns);
        await_time(at_ns + MS);
        struct taken taken = drain(&world);
        struct slot_view view;
        bool is_off = switch_record_read(world.record, world.pid, &view) == 0 &&
                      view.departure.out_ns <= at_ns && !view.departure.in_ns;
        ran += taken.count == 0 && !is_off;
        if (taken.count == 0)
            continue;
        assert_int_equal(taken.last.departure.state, THREAD_RUNNABLE);
        assert_int_equal(taken.last.departure.runnable_ns, taken.last.departure.out_ns);
        /* It may also have lost its CPU at an earlier tick, for as long. */
        uint64_t off_ns = ticks_ns[taken.last.last_tick % 4];
        assert_true(taken.last.departure.out_ns <= off_ns && off_ns < taken.last.departure.in_ns);
    }
    teardown(&world);
}

/* The last CPU before `end` on which we may run. */
static unsigned last_cpu_before(unsigned end)
{
    cpu_set_t cpus;
    unsigned last = CPU_SETSIZE;
    assert_int_equal(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    for (unsigned i = 0; i < end; i++)
        last = CPU_ISSET(i, &cpus) ? i : last;
    return last;
}

static unsigned last_cpu(void)
{
    return last_cpu_before(CPU_SETSIZE);
}

static void pin(pid_t pid, unsigned cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(pid, sizeof one, &one), 0);
}

/* Two processes compute on one CPU. One of them is followed: its departures show when it had the
 * CPU. */
static void test_which_thread_has_a_cpu_at_a_tick(void **state)
{
    (void)state;
    const struct switch_options options = {0};
    struct world world = setup(&options, compute);
    int to_other;
    pid_t other = start_child(compute, &to_other);
    const unsigned cpu = last_cpu();
    const struct ticks ticks = {monotonic_ns(), 3 * MS, 17};
    struct cpu_user user;
    unsigned own = 0, others = 0, unknown = 0;
    pin(world.pid, cpu);
    pin(other, cpu);
    switch_record_set_ticks(world.record, &ticks);
    assert_int_equal(switch_record_follow(world.record, world.pid), 0);
    assert_false(switch_record_find_cpu_user(world.record, cpu, monotonic_ns(), &user));
    switch_record_watch_cpus(world.record, true);
    assert_false(switch_record_find_cpu_user(world.record, cpu, ticks.start_ns, &user));
    assert_false(switch_record_find_cpu_user(world.record, SWITCH_CPUS, monotonic_ns(), &user));
    assert_int_equal(write(to_other, "", 1), 1);
    let_child(&world, 1);
    await_count(&shared->ready, 1);
    uint64_t first = ticks_until(&ticks, monotonic_ns());
    for (uint64_t period = first; own < 10 || others < 10; period++) {
        uint64_t at_ns = ticks_due_ns(&ticks, period);
        struct slot_view view;
        assert_true(at_ns < ticks.start_ns + HANGS_NS);
        await_time(at_ns);
        /* Some kernels hide which thread got an idle CPU. */
        if (!switch_record_find_cpu_user(world.record, cpu, at_ns, &user)) {
            unknown++;
            continue;
        }
        const struct departure *departure = &view.departure;
        if (switch_record_read(world.record, world.pid, &view) || departure->out_ns > at_ns)
            continue;
        bool had_it = departure->in_ns && departure->in_ns <= at_ns;
        assert_int_equal(user.process_id == world.pid, had_it);
        own += had_it;
        others += user.process_id == other;
        if (user.process_id != other)
            continue;
        assert_int_equal(user.tid, other);
        assert_int_equal(user.kind, WAKE_BY_THREAD);
        assert_int_equal(departure->runnable_cpu, cpu);
    }
    assert_true(unknown < own + others);
    switch_record_watch_cpus(world.record, false);
    assert_false(switch_record_find_cpu_user(world.record, cpu, monotonic_ns(), &user));
    end_child(other, to_other);
    teardown(&world);
}

/* The thread is woken on a CPU on which another one computes. */
static void test_which_cpu_a_woken_thread_waits_for(void **state)
{
    (void)state;
    const struct switch_options options = {0};
    struct world world = setup(&options, sleep_often);
    const unsigned cpu = last_cpu();
    struct slot_view view;
    pin(world.pid, cpu);
    assert_int_equal(switch_record_follow(world.record, world.pid), 0);
    let_child(&world, 1);
    await_sleep(&world, world.pid, SYS_read, 1, &view);
    let_child(&world, 1);
    await_sleep(&world, world.pid, SYS_read, 2, &view);
    assert_int_equal(view.departure.runnable_cpu, cpu);
    teardown(&world);
}

/* The thread waits behind another one that computes, and is moved to another CPU. */
static void test_when_a_thread_is_moved_to_another_cpu(void **state)
{
    (void)state;
    const struct switch_options options = {0};
    const unsigned cpu = last_cpu(), free_cpu = last_cpu_before(cpu);
    if (free_cpu == CPU_SETSIZE)
        skip();
    struct world world = setup(&options, compute);
    int to_other;
    pid_t other = start_child(compute, &to_other);
    uint64_t until_ns = monotonic_ns() + HANGS_NS;
    struct slot_view view;
    const struct departure *departure = &view.departure;
    bool was_moved = false;
    pin(other, cpu);
    assert_int_equal(switch_record_follow(world.record, world.pid), 0);
    assert_int_equal(write(to_other, "", 1), 1);
    pin(world.pid, cpu);
    let_child(&world, 1);
    await_count(&shared->ready, 1);
    while (!was_moved) {
        assert_true(monotonic_ns() < until_ns);
        pin(world.pid, cpu);
        while (switch_record_read(world.record, world.pid, &view) || departure->in_ns ||
               departure->moved_ns)
            assert_true(monotonic_ns() < until_ns);
        uint64_t number = departure->number, from_ns = monotonic_ns();
        pin(world.pid, free_cpu);
        was_moved = switch_record_read(world.record, world.pid, &view) == 0 &&
                    departure->number == number && departure->moved_ns;
        if (!was_moved)
            continue; /* it was faster */
        assert_in_range(departure->moved_ns, from_ns, monotonic_ns());
        assert_int_equal(departure->runnable_cpu, cpu);
    }
    end_child(other, to_other);
    teardown(&world);
}

static void test_messages_that_do_not_fit_are_counted(void **state)
{
    (void)state;
    const struct switch_options options = {.stack_bytes = 3000, .ring_bytes = 4096};
    struct world world = setup_followed(&options, sleep_often);
    sleep_through(&world, 1, 1, 1);
    sleep_through(&world, 2, 2, 2);
    assert_int_equal(switch_record_counters(world.record).lost_messages, 1);
    assert_int_equal(drain(&world).count, 1);
    sleep_through(&world, 3, 3, 3);
    assert_int_equal(drain(&world).last.last_tick, 3);
    teardown(&world);
}

static int count_wake(void *argument, const struct past_departure *past)
{
    *(unsigned *)argument += past->kind == SWITCH_MESSAGE_WAKE;
    return 0;
}

static void test_wakes_that_do_not_fit_are_counted(void **state)
{
    (void)state;
    const unsigned turns = 20;
    const struct switch_options options = {.tells_wakes = true, .ring_bytes = 4096};
    struct world world = setup_followed(&options, sleep_often);
    unsigned taken = 0;
    for (unsigned turn = 1; turn <= turns; turn++)
        sleep_through(&world, turn, turn, turn);
    uint64_t lost = switch_record_counters(world.record).lost_wakes;
    assert_true(switch_record_drain(world.record, count_wake, &taken) > 0);
    assert_in_range(lost, 1, turns - 1);
    assert_in_range(taken + lost, turns, turns + 1); /* the wake that starts it may count */
    teardown(&world);
}

static int refuse(void *argument, const struct past_departure *past)
{
    (void)argument, (void)past;
    return -ECANCELED;
}

static void test_whoever_takes_messages_may_stop(void **state)
{
    (void)state;
    const struct switch_options options = {0};
    struct world world = setup_followed(&options, sleep_often);
    sleep_through(&world, 1, 1, 1);
    sleep_through(&world, 2, 2, 2);
    assert_int_equal(switch_record_drain(world.record, refuse, NULL), -ECANCELED);
    assert_int_equal(drain(&world).count, 1);
    teardown(&world);
}

/* ---- Slots ---- */

static unsigned count_read(const struct world *world, unsigned threads)
{
    unsigned count = 0;
    for (unsigned i = 0; i < threads; i++) {
        struct slot_view view;
        count += switch_record_read(world->record, shared->tids[i], &view) == 0;
    }
    return count;
}

static void test_threads_without_a_slot_are_counted(void **state)
{
    (void)state;
    const struct switch_options options = {.threads_max = 4};
    struct world world = setup_followed(&options, have_ten_threads);
    uint64_t until_ns = monotonic_ns() + HANGS_NS;
    await_count(&shared->ready, 10);
    while (switch_record_counters(world.record).without_slot < 7) {
        assert_true(monotonic_ns() < until_ns);
        rest();
    }
    assert_int_equal(switch_record_counters(world.record).slots_used, 4);
    assert_in_range(count_read(&world, 10), 3, 4); /* and its first thread */
    teardown(&world);
}

#define SLOTS 1024u /* far fewer than threads are born */

static void test_threads_that_end_give_their_slots_back(void **state)
{
    (void)state;
    const struct switch_options options = {.stack_bytes = 1024, .threads_max = SLOTS};
    struct world world = setup_followed(&options, bear_threads);
    struct slot_view view;
    await_count(&shared->ended, 1);
    await_sleep(&world, world.pid, SYS_read, 1, &view);
    struct switch_counters counters = switch_record_counters(world.record);
    assert_int_equal(counters.without_slot, 0);
    /* Each thread is joined before it leaves its CPU for the last time, on a busy machine long
     * before. */
    assert_in_range(counters.slots_used, 2, SLOTS);
    teardown(&world);
}

static void test_others_leave_nothing(void **state)
{
    (void)state;
    const struct switch_options options = {.stack_bytes = 1024};
    struct world world = setup(&options, have_ten_threads);
    let_child(&world, 1);
    await_count(&shared->ready, 10);
    await_time(monotonic_ns() + 10 * MS);
    struct switch_counters counters = switch_record_counters(world.record);
    assert_int_equal(counters.slots_used, 0);
    assert_int_equal(counters.without_memory, 0);
    assert_int_equal(count_read(&world, 10), 0);
    teardown(&world);
}

static void test_a_process_that_is_followed_no_longer_gives_its_slots_back(void **state)
{
    (void)state;
    const struct switch_options options = {.threads_max = 1};
    struct world world = setup_followed(&options, sleep_often);
    struct slot_view view, other_view;
    struct world other = world;
    await_sleep(&world, world.pid, SYS_read, 1, &view);
    switch_record_unfollow(world.record, world.pid);
    other.pid = start_child(sleep_often, &other.to_child);
    await_time(monotonic_ns() + 1100 * MS);
    assert_int_equal(switch_record_follow(other.record, other.pid), 0);
    let_child(&other, 1);
    await_sleep(&other, other.pid, SYS_read, 1, &other_view);
    assert_int_equal(other_view.slot, view.slot);
    assert_int_not_equal(other_view.generation, view.generation);
    assert_false(switch_record_is_unmoved(world.record, &view));
    assert_int_equal(switch_record_read(world.record, world.pid, &view), -ENOENT);
    /* Followed again, it has no slot until the other process has exited. */
    assert_int_equal(switch_record_follow(world.record, world.pid), 0);
    end_child(other.pid, other.to_child);
    let_child(&world, 1);
    await_sleep(&world, world.pid, SYS_read, 2, &view);
    teardown(&world);
}

static void test_a_thread_that_executes_has_the_id_of_its_process(void **state)
{
    (void)state;
    const struct switch_options options = {0};
    struct world world = setup_followed(&options, execute_in_thread);
    uint64_t until_ns = monotonic_ns() + HANGS_NS;
    struct slot_view view;
    while (switch_record_read(world.record, world.pid, &view) ||
           view.departure.syscall_number != SYS_read || view.departure.in_ns ||
           view.departure.registers.call_arguments[0] != 0) {
        assert_true(monotonic_ns() < until_ns);
        rest();
    }
    check_by_ptrace(world.pid, &view.departure.registers);
    teardown(&world);
}

/* The record knows nothing about the child until it is woken. */
static void test_memory_can_be_allocated_at_wakes(void **state)
{
    (void)state;
    const struct switch_options options = {.stack_bytes = 1024, .allocates_when_woken = true};
    struct world world = setup_followed(&options, read_bytes);
    uint64_t until_ns = monotonic_ns() + HANGS_NS;
    struct slot_view view;
    while (switch_record_read(world.record, world.pid, &view)) {
        assert_true(monotonic_ns() < until_ns);
        let_child(&world, 1);
        rest();
    }
    await_sleep(&world, world.pid, SYS_read, 1, &view);
    check_by_ptrace(world.pid, &view.departure.registers);
    assert_int_equal(switch_record_counters(world.record).without_memory, 0);
    teardown(&world);
}

/* A new thread sleeps without ever having been woken. */
static void test_memory_can_be_allocated_for_new_threads(void **state)
{
    (void)state;
    const struct switch_options options = {.stack_bytes = 1024, .allocates_when_woken = true};
    struct world world = setup_followed(&options, have_ten_threads);
    uint64_t until_ns = monotonic_ns() + HANGS_NS;
    await_count(&shared->ready, 10);
    while (count_read(&world, 10) < 10) {
        assert_true(monotonic_ns() < until_ns);
        rest();
    }
    teardown(&world);
}

/* ---- Permissions and namespaces ---- */

/* Runs in a child. Returns 0, or the number of the check that failed. */
static int run_in_namespace(void)
{
    const struct switch_options options = {.stack_bytes = 1024};
    struct world world = {0};
    struct slot_view view;
    uint64_t until_ns = monotonic_ns() + HANGS_NS;
    if (switch_record_open(&options, &world.record))
        return 1;
    world.pid = start_child(read_bytes, &world.to_child);
    if (switch_record_follow(world.record, world.pid))
        return 2;
    while (switch_record_read(world.record, world.pid, &view) || view.departure.in_ns ||
           view.departure.syscall_number != SYS_read) {
        if (monotonic_ns() > until_ns)
            return 3;
        /* /proc shows other ids, so it may not have slept until now. */
        if (write(world.to_child, "x", 1) != 1)
            return 4;
        rest();
    }
    if (view.departure.tid != world.pid || view.departure.process_id != world.pid)
        return 5;
    switch_record_free(world.record);
    return world.pid > 2 ? 6 : 0; /* the namespace has no others */
}

static int status_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_ids_are_of_our_namespace(void **state)
{
    (void)state;
    const struct switch_options options = {0};
    struct switch_record *record;
    assert_int_equal(open_record(&options, &record), 0);
    switch_record_free(record);
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWPID))
            _exit(SKIPPED);
        pid = fork();
        if (pid == 0)
            _exit(run_in_namespace());
        _exit(status_of(pid));
    }
    int status = status_of(pid);
    if (status == SKIPPED)
        skip();
    assert_int_equal(status, 0);
}

static void test_threads_of_inner_namespaces_are_seen(void **state)
{
    (void)state;
    const struct switch_options options = {0};
    struct world world = {0};
    struct slot_view view;
    assert_int_equal(open_record(&options, &world.record), 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t own = fork();
    if (own == 0)
        _exit(unshare(CLONE_NEWPID) ? SKIPPED : 0);
    if (status_of(own) == SKIPPED) {
        switch_record_free(world.record);
        skip();
    }
    /* From now on, children of this process are in a new namespace, and have an id in each
     * namespace: here the outer one is used. */
    int outer = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    assert_int_equal(unshare(CLONE_NEWPID), 0);
    world.pid = start_child(sleep_often, &world.to_child);
    assert_int_equal(setns(outer, CLONE_NEWPID), 0);
    close(outer);
    assert_int_equal(switch_record_follow(world.record, world.pid), 0);
    let_child(&world, 1);
    await_sleep(&world, world.pid, SYS_read, 1, &view);
    teardown(&world);
}

static void note_log(void *argument, const char *text)
{
    *(size_t *)argument += strlen(text);
}

static void test_says_why_it_is_refused_without_privilege(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        size_t length = 0;
        const struct switch_options options = {.log = note_log, .log_argument = &length};
        struct switch_record *record;
        if (geteuid() == 0 && setuid(65534))
            _exit(SKIPPED);
        int err = switch_record_open(&options, &record);
        _exit(err == -EPERM && !length ? 3 : err == -EPERM || err == -ENOTSUP ? 0 : err ? 1 : 2);
    }
    assert_int_equal(status_of(pid), 0);
}

static void test_options_out_of_range(void **state)
{
    (void)state;
    static const struct switch_options wrong[] = {
        {.threads_max = SWITCH_SLOTS_MAX + 1},
        {.stack_bytes = SWITCH_STACK_BYTES_MAX + 1},
        {.ring_bytes = 12288},
        {.ring_bytes = 1024},
    };
    struct switch_record *record;
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(switch_record_open(&wrong[i], &record), -EINVAL);
    switch_record_free(NULL);
}

static void test_says_nothing_if_it_is_not_refused(void **state)
{
    (void)state;
    size_t length = 0;
    const struct switch_options options = {.log = note_log, .log_argument = &length};
    struct switch_record *record;
    assert_int_equal(open_record(&options, &record), 0);
    assert_int_equal(switch_record_follow(record, 0), -EINVAL);
    assert_int_equal(switch_record_follow(record, PROCESS_IDS), -EINVAL);
    switch_record_unfollow(record, PROCESS_IDS);
    switch_record_free(record);
    assert_int_equal(length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers_are_those_of_ptrace),
        cmocka_unit_test(test_a_thread_that_was_woken_has_moved),
        cmocka_unit_test(test_a_short_sleep_at_a_tick_is_told_with_its_stack),
        cmocka_unit_test(test_stacks_are_copied_shortly_before_a_tick),
        cmocka_unit_test(test_the_kernels_functions_of_a_sleep_are_told_where_wanted),
        cmocka_unit_test(test_stacks_are_copied_after_a_pause),
        cmocka_unit_test(test_the_reader_says_how_much_of_a_stack_it_wants),
        cmocka_unit_test(test_the_stack_that_a_thread_has_left),
        cmocka_unit_test(test_frames_of_python),
        cmocka_unit_test(test_frames_of_python_at_samples),
        cmocka_unit_test(test_a_stack_is_copied_up_to_its_end),
        cmocka_unit_test(test_a_wait_for_a_futex_is_told_with_its_memory),
        cmocka_unit_test(test_the_memory_of_a_futex_is_known_before_its_wait_is_over),
        cmocka_unit_test(test_one_message_for_several_ticks),
        cmocka_unit_test(test_a_return_that_no_switch_told_of),
        cmocka_unit_test(test_a_sleep_without_a_tick_is_not_told),
        cmocka_unit_test(test_what_ends_a_wait_is_told),
        cmocka_unit_test(test_a_waker_is_told_with_its_stack),
        cmocka_unit_test(test_an_acknowledged_tick_is_not_told),
        cmocka_unit_test(test_a_running_thread_is_not_told),
        cmocka_unit_test(test_which_thread_has_a_cpu_at_a_tick),
        cmocka_unit_test(test_which_cpu_a_woken_thread_waits_for),
        cmocka_unit_test(test_when_a_thread_is_moved_to_another_cpu),
        cmocka_unit_test(test_messages_that_do_not_fit_are_counted),
        cmocka_unit_test(test_wakes_that_do_not_fit_are_counted),
        cmocka_unit_test(test_whoever_takes_messages_may_stop),
        cmocka_unit_test(test_threads_without_a_slot_are_counted),
        cmocka_unit_test(test_threads_that_end_give_their_slots_back),
        cmocka_unit_test(test_others_leave_nothing),
        cmocka_unit_test(test_a_process_that_is_followed_no_longer_gives_its_slots_back),
        cmocka_unit_test(test_a_thread_that_executes_has_the_id_of_its_process),
        cmocka_unit_test(test_memory_can_be_allocated_at_wakes),
        cmocka_unit_test(test_memory_can_be_allocated_for_new_threads),
        cmocka_unit_test(test_ids_are_of_our_namespace),
        cmocka_unit_test(test_threads_of_inner_namespaces_are_seen),
        cmocka_unit_test(test_says_why_it_is_refused_without_privilege),
        cmocka_unit_test(test_options_out_of_range),
        cmocka_unit_test(test_says_nothing_if_it_is_not_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
