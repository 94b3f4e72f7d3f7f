/* Observations of sleeping threads, from a directory that looks like /proc/PID: its thread has our
 * id and "sleeps" with a buffer of ours as its stack. */
#include "unit.h"
#include "observe/proc_source.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define STACK_BYTES 256

static _Alignas(STACK_BYTES) unsigned char sleepers_stack[STACK_BYTES];

struct fake {
    char path[32];
    struct stack_areas areas;
    struct watches watches;
    struct snapshot snapshot;
    struct observation seen;
    struct subject subject;
};

static void put(const struct fake *fake, const char *name, const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "task/%d/%s", gettid(), name);
    int fd = openat(fake->subject.proc_fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void take_away(const struct fake *fake, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "task/%d/%s", gettid(), name);
    unlinkat(fake->subject.proc_fd, path, 0);
}

static void put_state(const struct fake *fake, char letter)
{
    char line[256];
    snprintf(line, sizeof line,
             "%d (a) D) b) %c 1 1 1 0 -1 4194560 177 0 0 0 0 0 0 0 20 0 3 0 9056 0 0 0 0 0 0 0 0 0 "
             "0 0 0 0 0 0 17 1 0 0 0 0 0\n",
             gettid(), letter);
    put(fake, "stat", line);
}

/* Makes the thread blocked in this call, with sleepers_stack at its stack pointer. */
static void put_blocked(const struct fake *fake, long syscall_number)
{
    char line[160];
    snprintf(line, sizeof line, "%ld 0x1 0x2 0x3 0x4 0x5 0x6 %p 0x401000\n", syscall_number,
             (void *)sleepers_stack);
    put(fake, "syscall", line);
}

/* Makes it blocked on a futex (FUTEX_WAIT). */
static void put_waiting(const struct fake *fake)
{
    char line[160];
    snprintf(line, sizeof line, "%d 0x1 0x0 0x3 0x0 0x0 0x0 %p 0x401000\n", SYS_futex,
             (void *)sleepers_stack);
    put(fake, "syscall", line);
}

static void put_switches(const struct fake *fake, unsigned count)
{
    char text[128];
    snprintf(text, sizeof text, "voluntary_ctxt_switches:\t%u\nnonvoluntary_ctxt_switches:\t1\n",
             count);
    put(fake, "status", text);
}

static int set_up(void **state)
{
    struct fake *fake = calloc(1, sizeof *fake);
    char task[64];
    assert_non_null(fake);
    *state = fake;
    strcpy(fake->path, "/tmp/fgprof-unit-XXXXXX");
    assert_non_null(mkdtemp(fake->path));
    fake->subject = (struct subject){
        .process_id = getpid(),
        .tid = gettid(),
        .proc_fd = open(fake->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        .stack_areas = &fake->areas,
        .stack_limit = STACK_BYTES,
    };
    fake->watches.keep_fds_below = 1000;
    static const struct stack_place none = {0};
    assert_true(snapshot_make_room(&fake->snapshot, STACK_BYTES, &none));
    assert_true(fake->subject.proc_fd >= 0);
    assert_int_equal(mkdirat(fake->subject.proc_fd, "task", 0700), 0);
    snprintf(task, sizeof task, "task/%d", gettid());
    assert_int_equal(mkdirat(fake->subject.proc_fd, task, 0700), 0);
    put(fake, "schedstat", "1187426 53201 37\n");
    put_blocked(fake, 202);
    put_state(fake, 'S');
    for (size_t i = 0; i < STACK_BYTES; i++)
        sleepers_stack[i] = (unsigned char)i;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"schedstat", "stack", "stat", "status", "syscall", "wchan"};
    struct fake *fake = *state;
    char task[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        take_away(fake, names[i]);
    snprintf(task, sizeof task, "task/%d", gettid());
    unlinkat(fake->subject.proc_fd, task, AT_REMOVEDIR);
    unlinkat(fake->subject.proc_fd, "task", AT_REMOVEDIR);
    close(fake->subject.proc_fd);
    assert_int_equal(rmdir(fake->path), 0);
    watches_free(&fake->watches);
    snapshot_clear(&fake->snapshot);
    free(fake);
    return 0;
}

static enum outcome observe(struct fake *fake)
{
    fake->seen = (struct observation){.snapshot = &fake->snapshot};
    return proc_source_observe(&fake->watches, &fake->subject, &fake->seen);
}

/* After a stop, a call continues as restart_syscall: the same call, if the thread is where it was.
 */
static void test_a_call_that_goes_on_after_a_stop(void **state)
{
    struct fake *fake = *state;
    put_waiting(fake);
    put_switches(fake, 1);
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_int_equal(fake->seen.wait.call.kind, CALL_FUTEX);
    for (unsigned i = 2; i < 4; i++) {
        char line[160];
        snprintf(line, sizeof line, "%d 0x1 0x0 0x3 0x0 0x0 0x0 %p 0x401000\n", SYS_restart_syscall,
                 (void *)sleepers_stack);
        put(fake, "syscall", line);
        put(fake, "schedstat", i == 2 ? "1187427 53201 38\n" : "1187428 53201 39\n");
        assert_int_equal(observe(fake), OUTCOME_OBSERVED);
        assert_int_equal(fake->seen.wait.syscall_number, SYS_futex);
        assert_int_equal(fake->seen.wait.call.kind, CALL_FUTEX);
    }
    put(fake, "syscall", "219 0x1 0x0 0x3 0x0 0x0 0x0 0x7000 0x401000\n");
    put(fake, "schedstat", "1187429 53201 40\n");
    observe(fake);
    assert_int_not_equal(fake->seen.wait.call.kind, CALL_FUTEX);
}

static void test_asleep_then_unmoved(void **state)
{
    struct fake *fake = *state;
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_int_equal(fake->seen.wait.syscall_number, 202);
    assert_int_equal(fake->snapshot.stack.bytes, STACK_BYTES);
    assert_memory_equal(fake->snapshot.stack.memory, sleepers_stack, STACK_BYTES);
    /* The count alone proves that it still sleeps: nothing else is read. */
    take_away(fake, "syscall");
    take_away(fake, "stat");
    assert_int_equal(observe(fake), OUTCOME_UNMOVED);
    put_blocked(fake, 202);
    put_state(fake, 'S');
    put(fake, "schedstat", "1187426 53201 38\n");
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
}

static void test_a_copy_that_is_wanted_anew(void **state)
{
    struct fake *fake = *state;
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_int_equal(observe(fake), OUTCOME_UNMOVED);
    assert_int_equal(fake->seen.evidence, EVIDENCE_UNMOVED);
    fake->subject.wants_copy = true;
    sleepers_stack[0] ^= 0xff;
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_int_equal(fake->seen.evidence, EVIDENCE_ASLEEP);
    assert_memory_equal(fake->snapshot.stack.memory, sleepers_stack, STACK_BYTES);
}

/* The thread is no longer blocked, and has not got a CPU yet. That is only checked for threads that
 * often wait for a CPU. */
static void test_a_sleep_that_ends_with_a_wait_for_a_cpu(void **state)
{
    struct fake *fake = *state;
    fake->subject.waits_for_cpu = true;
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_int_equal(observe(fake), OUTCOME_UNMOVED);
    put(fake, "syscall", "running\n");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(observe(fake), OUTCOME_WOKEN);
        assert_int_equal(fake->seen.evidence, EVIDENCE_WOKEN);
        assert_int_equal(fake->seen.state, THREAD_RUNNABLE);
        assert_int_equal(fake->seen.now.activity.switches, 37);
    }
    fake->subject.waits_for_cpu = false;
    assert_int_equal(observe(fake), OUTCOME_UNMOVED);
    fake->subject.waits_for_cpu = true;
    put(fake, "schedstat", "1187426 53201 38\n");
    assert_int_equal(observe(fake), OUTCOME_RUNNING);
    assert_int_equal(observe(fake), OUTCOME_RUNNING);
}

/* Every outcome except its end has the thread's account. */
static void test_readings(void **state)
{
    struct fake *fake = *state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(observe(fake), i == 0   ? OUTCOME_OBSERVED
                                        : i == 1 ? OUTCOME_UNMOVED
                                                 : OUTCOME_RUNNING);
        assert_true(fake->seen.now.at_ns > 0 && fake->seen.now.has_activity);
        assert_int_equal(fake->seen.now.activity.running_ns, 1187426);
        assert_int_equal(fake->seen.now.activity.waiting_ns, 53201);
        if (i == 1) {
            put(fake, "syscall", "running\n");
            fake->subject.wants_copy = true;
        }
    }
}

static void test_states(void **state)
{
    struct fake *fake = *state;
    static const struct {
        char letter;
        enum thread_state state;
    } letters[] = {
        {'S', THREAD_SLEEPING}, {'D', THREAD_UNINTERRUPTIBLE}, {'T', THREAD_STOPPED},
        {'t', THREAD_STOPPED},  {'R', THREAD_RUNNABLE},        {'S', THREAD_SLEEPING},
    };
    put(fake, "wchan", "0");
    for (unsigned i = 0; i < sizeof letters / sizeof *letters; i++) {
        char line[32];
        /* It moved each time. */
        snprintf(line, sizeof line, "1 1 %u\n", 100 + i);
        put(fake, "schedstat", line);
        put_state(fake, letters[i].letter);
        assert_int_equal(observe(fake), OUTCOME_OBSERVED);
        assert_int_equal(fake->seen.state, letters[i].state);
        assert_string_equal(fake->seen.wait.channel, "");
    }
}

static void test_stat_that_can_not_be_read(void **state)
{
    struct fake *fake = *state;
    take_away(fake, "stat");
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_int_equal(fake->seen.state, THREAD_UNKNOWN);
}

static void test_wait_channel(void **state)
{
    struct fake *fake = *state;
    char long_name[201];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    put(fake, "wchan", "kernel_clone");
    /* If a signal can wake the thread, the call says more. */
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_string_equal(fake->seen.wait.channel, "");
    put_state(fake, 'D');
    put(fake, "schedstat", "1 1 101\n");
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_string_equal(fake->seen.wait.channel, "kernel_clone");
    put(fake, "wchan", long_name);
    put(fake, "schedstat", "1 1 102\n");
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_int_equal(strlen(fake->seen.wait.channel), WAIT_CHANNEL_BYTES - 1);
    take_away(fake, "wchan");
    put(fake, "schedstat", "1 1 103\n");
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_int_equal(fake->seen.state, THREAD_UNINTERRUPTIBLE);
    assert_string_equal(fake->seen.wait.channel, "");
}

static void test_kernel_stack(void **state)
{
    struct fake *fake = *state;
    put(fake, "stack", "[<0>] futex_wait_queue+0x60/0x90\n[<0>] do_syscall_64+0x71/0x280\n");
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_null(fake->snapshot.kernel_stack);
    fake->subject.wants_kernel_stack = true;
    put(fake, "schedstat", "1 1 101\n");
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_string_equal(fake->snapshot.kernel_stack, "futex_wait_queue\ndo_syscall_64\n");
    /* While it sleeps on, its kernel stack is not read again. */
    take_away(fake, "stack");
    assert_int_equal(observe(fake), OUTCOME_UNMOVED);
    assert_string_equal(fake->snapshot.kernel_stack, "futex_wait_queue\ndo_syscall_64\n");
    /* It does not apply to another sleep. */
    put(fake, "schedstat", "1 1 102\n");
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_string_equal(fake->snapshot.kernel_stack, "");
}

/* Preemptions are read in a sleep in futex(2), from the second copy on, and again a second later.
 */
static void test_preemptions(void **state)
{
    struct fake *fake = *state;
    put(fake, "status", "nonvoluntary_ctxt_switches:\t5\n");
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_false(fake->seen.wait.has_preemptions);
    put(fake, "schedstat", "1 1 101\n");
    put_waiting(fake);
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_true(fake->seen.wait.has_preemptions);
    assert_int_equal(fake->seen.wait.preemptions, 5);
    put(fake, "schedstat", "1 1 102\n");
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_false(fake->seen.wait.has_preemptions);
    watches_get(&fake->watches, 0)->preemptions_read_ns -= 1000000000u;
    assert_int_equal(observe(fake), OUTCOME_UNMOVED);
    assert_false(fake->seen.wait.has_preemptions);
    put(fake, "schedstat", "1 1 103\n");
    put_blocked(fake, SYS_read);
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_false(fake->seen.wait.has_preemptions);
    put(fake, "schedstat", "1 1 104\n");
    put_waiting(fake);
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_true(fake->seen.wait.has_preemptions);
}

static void test_running(void **state)
{
    struct fake *fake = *state;
    put(fake, "syscall", "running\n");
    assert_int_equal(observe(fake), OUTCOME_RUNNING);
}

struct mover {
    int schedstat_fd;
    atomic_bool is_done;
};

static void *move_on_and_on(void *argument)
{
    struct mover *mover = argument;
    for (unsigned i = 0; !atomic_load(&mover->is_done); i++) {
        const char *text = i % 2 ? "1187426 53201 37\n" : "1187426 53201 38\n";
        assert_int_equal(pwrite(mover->schedstat_fd, text, strlen(text), 0), strlen(text));
    }
    return NULL;
}

/* The thread is asleep when it is looked at, but its count of switches has changed when it was
 * copied, or when the details of the wait were read. */
static void test_a_sleep_that_is_over_before_its_proof(void **state)
{
    struct fake *fake = *state;
    struct mover mover = {0};
    char path[64];
    pthread_t thread;
    snprintf(path, sizeof path, "task/%d/schedstat", gettid());
    mover.schedstat_fd = openat(fake->subject.proc_fd, path, O_WRONLY | O_CLOEXEC);
    assert_true(mover.schedstat_fd >= 0);
    assert_int_equal(pthread_create(&thread, NULL, move_on_and_on, &mover), 0);
    enum outcome outcome;
    do
        outcome = observe(fake);
    while (!fake->seen.asleep.is_over);
    assert_int_equal(outcome, OUTCOME_OBSERVED);
    assert_int_equal(fake->seen.evidence, EVIDENCE_ASLEEP);
    do
        outcome = observe(fake);
    while (!fake->seen.asleep.was_asleep);
    assert_false(fake->seen.asleep.is_over);
    atomic_store(&mover.is_done, true);
    pthread_join(thread, NULL);
    close(mover.schedstat_fd);
    assert_int_equal(outcome, OUTCOME_RUNNING);
    assert_int_equal(fake->seen.wait.syscall_number, 202);
    assert_int_equal(registers_pc(&fake->snapshot.registers), 0x401000);
    assert_int_equal(registers_sp(&fake->snapshot.registers), (uintptr_t)sleepers_stack);
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_false(fake->seen.asleep.was_asleep);
    assert_false(fake->seen.asleep.is_over);
    put(fake, "syscall", "running\n");
    put(fake, "schedstat", "1187426 53201 39\n");
    assert_int_equal(observe(fake), OUTCOME_RUNNING);
    assert_false(fake->seen.asleep.was_asleep);
}

static void test_zombie(void **state)
{
    struct fake *fake = *state;
    put(fake, "syscall", "-1 0x0 0x0\n");
    put_state(fake, 'Z');
    assert_int_equal(observe(fake), OUTCOME_GONE);
    put_state(fake, 'X');
    assert_int_equal(observe(fake), OUTCOME_GONE);
    take_away(fake, "stat");
    assert_int_equal(observe(fake), OUTCOME_GONE);
}

/* A thread like those of io_uring: its call is that of the thread that created it. */
static void test_a_thread_of_the_kernels(void **state)
{
    struct fake *fake = *state;
    put(fake, "syscall", "425 0x8 0x7ffe8bd8ab80 0x0 0x0 0x7fc6477246d0 0x0 0x0 0x0\n");
    put_state(fake, 'S');
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_int_equal(fake->seen.evidence, EVIDENCE_ASLEEP);
    assert_int_equal(fake->seen.state, THREAD_SLEEPING);
    assert_int_equal(fake->seen.wait.syscall_number, -1);
    assert_int_equal(fake->snapshot.stack.bytes, 0);
    assert_int_equal(observe(fake), OUTCOME_UNMOVED);
}

static void assert_works_by_status(struct fake *fake)
{
    put_switches(fake, 36);
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_memory_equal(fake->snapshot.stack.memory, sleepers_stack, STACK_BYTES);
    assert_int_equal(observe(fake), OUTCOME_UNMOVED);
    put_switches(fake, 37);
    assert_int_equal(observe(fake), OUTCOME_OBSERVED);
    assert_int_equal(observe(fake), OUTCOME_UNMOVED);
    /* It woke, and has not left its CPU since, so no switch is counted. */
    put(fake, "syscall", "running\n");
    assert_int_equal(observe(fake), OUTCOME_RUNNING);
}

static void test_schedstat_that_does_not_count(void **state)
{
    struct fake *fake = *state;
    put(fake, "schedstat", "0 0 0\n");
    assert_works_by_status(fake);
}

static void test_no_schedstat(void **state)
{
    struct fake *fake = *state;
    take_away(fake, "schedstat");
    assert_works_by_status(fake);
}

static void test_no_count_at_all(void **state)
{
    struct fake *fake = *state;
    take_away(fake, "schedstat");
    /* Every existing thread has one of the two files. */
    assert_int_equal(observe(fake), OUTCOME_GONE);
}

#define WITH_FAKE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FAKE(test_asleep_then_unmoved),
        WITH_FAKE(test_a_call_that_goes_on_after_a_stop),
        WITH_FAKE(test_states),
        WITH_FAKE(test_stat_that_can_not_be_read),
        WITH_FAKE(test_wait_channel),
        WITH_FAKE(test_kernel_stack),
        WITH_FAKE(test_preemptions),
        WITH_FAKE(test_running),
        WITH_FAKE(test_a_copy_that_is_wanted_anew),
        WITH_FAKE(test_a_sleep_that_ends_with_a_wait_for_a_cpu),
        WITH_FAKE(test_readings),
        WITH_FAKE(test_a_sleep_that_is_over_before_its_proof),
        WITH_FAKE(test_zombie),
        WITH_FAKE(test_a_thread_of_the_kernels),
        WITH_FAKE(test_schedstat_that_does_not_count),
        WITH_FAKE(test_no_schedstat),
        WITH_FAKE(test_no_count_at_all),
    };
    return cmocka_run_group_tests_name("asleep", tests, NULL, NULL);
}
