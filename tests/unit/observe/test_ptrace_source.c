/* Stops of a child's threads: one computes, one sleeps. */
#include "unit.h"
#include "base/clock.h"
#include "observe/ptrace_source.h"
#include "proc/process.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define STACK_BYTES 4096

struct world {
    pid_t pid;
    bool is_reaped;
    struct process process;
    struct stack_areas areas;
    struct watches watches;
    struct ptrace_source *source;
    struct snapshot snapshots[2];
    struct subject subject;
};

static void compute(void)
{
    for (volatile unsigned i = 0;; i++) {
    }
}

static void sleep_on(void)
{
    struct timespec nap = {1000, 0};
    for (;;)
        nanosleep(&nap, NULL);
}

static void wait_for_letter(const struct world *world, char letter)
{
    struct timespec soon = {0, 1000000};
    char path[64], line[256];
    do {
        snprintf(path, sizeof path, "/proc/%d/stat", world->pid);
        int fd = open(path, O_RDONLY);
        ssize_t length = read(fd, line, sizeof line - 1);
        close(fd);
        assert_true(length > 0);
        line[length] = '\0';
        nanosleep(&soon, NULL);
    } while (strrchr(line, ')')[2] != letter);
}

static struct world *start(void body(void))
{
    static const struct stack_place none = {0};
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->pid = fork();
    if (world->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(100);
        body();
    }
    world->watches.keep_fds_below = 1000;
    assert_int_equal(process_open(world->pid, &world->process), 0);
    assert_int_equal(ptrace_source_new(&world->watches, &world->source), 0);
    for (int i = 0; i < 2; i++)
        assert_true(snapshot_make_room(&world->snapshots[i], STACK_BYTES, &none));
    world->subject = (struct subject){
        .process_id = world->pid,
        .tid = world->pid,
        .proc_fd = world->process.proc_fd,
        .stack_areas = &world->areas,
        .stack_limit = STACK_BYTES,
    };
    return world;
}

static void finish(struct world *world)
{
    kill(world->pid, SIGKILL);
    if (!world->is_reaped)
        assert_int_equal(waitpid(world->pid, NULL, 0), world->pid);
    ptrace_source_give_up(world->source);
    ptrace_source_free(world->source);
    process_close(&world->process);
    watches_free(&world->watches);
    stack_areas_free(&world->areas);
    for (int i = 0; i < 2; i++)
        snapshot_clear(&world->snapshots[i]);
    free(world);
}

static struct observation empty(struct world *world)
{
    return (struct observation){.snapshot = &world->snapshots[0], .tid = world->pid};
}

/* Continues until a stop is over. */
static enum outcome await(struct world *world, struct observation *ret_seen)
{
    struct timespec soon = {0, 100000};
    enum outcome outcome;
    ptrace_source_interrupt(world->source);
    while (!ptrace_source_let_go(world->source, 0))
        nanosleep(&soon, NULL);
    assert_true(ptrace_source_collect(world->source, ret_seen, &outcome));
    assert_false(ptrace_source_collect(world->source, ret_seen, &outcome));
    return outcome;
}

static void test_a_running_thread(void **state)
{
    (void)state;
    struct world *world = start(compute);
    struct observation seen = empty(world);
    wait_for_letter(world, 'R');
    assert_int_equal(ptrace_source_observe(world->source, &world->subject, &seen), OUTCOME_PENDING);
    assert_true(ptrace_source_awaits(world->source, world->pid));
    assert_int_equal(await(world, &seen), OUTCOME_OBSERVED);
    assert_int_equal(seen.evidence, EVIDENCE_STOPPED);
    assert_true(seen.state == THREAD_RUNNING || seen.state == THREAD_RUNNABLE);
    assert_true(seen.stop.pause_ns > 0 && seen.now.has_activity);
    assert_true(registers_has(&seen.snapshot->registers, architecture.frame_pointer));
    assert_true(seen.snapshot->stack.bytes > 0);
    assert_int_equal(ptrace_source_pending(world->source), 0);
    assert_false(ptrace_source_awaits(world->source, world->pid));
    wait_for_letter(world, 'R'); /* it continues to run */
    finish(world);
}

/* Stops the thread, as if the sampler had come to its CPU at that time of that CPU's clock. */
static enum outcome stop_where_we_came(struct world *world, uint64_t came_ns, bool is_visit,
                                       struct observation *ret_seen)
{
    const struct watch_place place = {world->process.proc_fd, world->pid, 1000};
    struct timespec soon = {0, 10000000};
    struct reading *look = &world->subject.look;
    nanosleep(&soon, NULL); /* it runs again after the previous stop, which counts as a sleep */
    *ret_seen = empty(world);
    look->has_activity =
        watch_read_activity(&place, watches_get(&world->watches, 0), &look->activity) == 0;
    look->at_ns = world->subject.tick_ns = world->subject.awake_ns = monotonic_ns();
    world->subject.visit_ns = is_visit ? look->at_ns : 0;
    world->subject.came_ns = came_ns;
    assert_true(look->has_activity);
    assert_int_equal(ptrace_source_observe(world->source, &world->subject, ret_seen),
                     OUTCOME_PENDING);
    return await(world, ret_seen);
}

/* The thread ran until the sampler came, or had left its CPU before: visits only take the first
 * case, and ticks only the second. */
static void test_visits_and_ticks(void **state)
{
    (void)state;
    struct world *world = start(compute);
    const uint64_t long_ago_ns = 1, later_ns = UINT64_MAX / 2;
    struct observation seen;
    wait_for_letter(world, 'R');
    assert_int_equal(stop_where_we_came(world, long_ago_ns, true, &seen), OUTCOME_OBSERVED);
    assert_int_equal(seen.state, THREAD_RUNNING);
    assert_true(seen.stop.visit_ns == world->subject.visit_ns);
    assert_int_equal(stop_where_we_came(world, later_ns, true, &seen), OUTCOME_ASLEEP);
    assert_true(seen.stop.pause_ns > 0); /* the pause still counts */
    assert_int_equal(stop_where_we_came(world, long_ago_ns, false, &seen), OUTCOME_ASLEEP);
    assert_int_equal(stop_where_we_came(world, later_ns, false, &seen), OUTCOME_OBSERVED);
    assert_int_equal(seen.state, THREAD_RUNNABLE);
    assert_int_equal(seen.stop.visit_ns, 0);
    finish(world);
}

static void test_a_sleeping_thread_is_not_stopped(void **state)
{
    (void)state;
    struct world *world = start(sleep_on);
    struct observation seen = empty(world);
    wait_for_letter(world, 'S');
    assert_int_equal(ptrace_source_observe(world->source, &world->subject, &seen), OUTCOME_ASLEEP);
    assert_int_equal(ptrace_source_pending(world->source), 0);
    finish(world);
}

/* A sleeping thread is only stopped where it was seen, and only if it is still there. */
static void test_a_stop_in_its_sleep(void **state)
{
    (void)state;
    struct world *world = start(sleep_on);
    struct observation seen = empty(world);
    struct registers registers;
    long number;
    const struct watch_place place = {world->process.proc_fd, world->pid, 1000};
    wait_for_letter(world, 'S');
    while (watch_read_blocked(&place, watches_get(&world->watches, 0), &registers, &number)) {
    }
    world->subject.asleep = (struct sleep_place){
        .pc = registers_pc(&registers),
        .sp = registers_sp(&registers) + 8,
        .state = THREAD_SLEEPING,
        .syscall_number = number,
    };
    assert_int_equal(ptrace_source_observe(world->source, &world->subject, &seen), OUTCOME_ASLEEP);
    world->subject.asleep.sp -= 8;
    assert_int_equal(ptrace_source_observe(world->source, &world->subject, &seen), OUTCOME_PENDING);
    assert_int_equal(await(world, &seen), OUTCOME_OBSERVED);
    assert_int_equal(seen.state, THREAD_SLEEPING);
    assert_int_equal(seen.wait.syscall_number, number);
    assert_true(seen.stop.asked.sp == registers_sp(&registers));
    assert_true(registers_has(&seen.snapshot->registers, architecture.frame_pointer));
    finish(world);
}

/* The end of a process's first thread is reported once, because nothing else can wait for it. */
static void test_an_end_that_was_seen(void **state)
{
    (void)state;
    struct world *world = start(compute);
    struct observation seen = empty(world);
    pid_t pid;
    int status;
    wait_for_letter(world, 'R');
    assert_int_equal(ptrace_source_observe(world->source, &world->subject, &seen), OUTCOME_PENDING);
    kill(world->pid, SIGKILL);
    wait_for_letter(world, 'Z');
    assert_int_equal(await(world, &seen), OUTCOME_GONE);
    assert_true(ptrace_source_next_exit(world->source, &pid, &status));
    assert_int_equal(pid, world->pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_false(ptrace_source_next_exit(world->source, &pid, &status));
    world->is_reaped = true;
    finish(world);
}

static int policy(void)
{
    return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

/* We run before others only while a stop is pending, even if it never comes. */
static void test_a_first_thread_that_died_is_not_waited_for(void **state)
{
    (void)state;
    struct world *world = start(compute);
    struct observation seen = empty(world);
    enum outcome outcome;
    wait_for_letter(world, 'R');
    assert_int_equal(ptrace_source_observe(world->source, &world->subject, &seen), OUTCOME_PENDING);
    kill(world->pid, SIGKILL);
    wait_for_letter(world, 'Z');
    ptrace_source_interrupt(world->source);
    bool may_run_first = policy() == SCHED_RR;
    ptrace_source_drop_dead_leader(world->source, world->pid, world->process.proc_fd);
    assert_true(ptrace_source_collect(world->source, &seen, &outcome));
    assert_int_equal(outcome, OUTCOME_GONE);
    assert_int_equal(policy(), SCHED_OTHER);
    finish(world);
    if (!may_run_first)
        skip();
}

static void test_no_such_thread(void **state)
{
    (void)state;
    struct world *world = start(compute);
    struct observation seen = empty(world);
    kill(world->pid, SIGKILL);
    assert_int_equal(waitpid(world->pid, NULL, 0), world->pid);
    world->is_reaped = true;
    world->subject.look.at_ns = UINT64_MAX / 2; /* it was seen running a moment ago */
    assert_int_equal(ptrace_source_observe(world->source, &world->subject, &seen), OUTCOME_GONE);
    finish(world);
}

/* ptrace refuses a zombie like a thread that may not be traced. */
static void test_a_zombie_is_gone(void **state)
{
    (void)state;
    struct world *world = start(compute);
    struct observation seen = empty(world);
    kill(world->pid, SIGKILL);
    wait_for_letter(world, 'Z');
    world->subject.look.at_ns = UINT64_MAX / 2; /* it was seen running a moment ago */
    assert_int_equal(ptrace_source_observe(world->source, &world->subject, &seen), OUTCOME_GONE);
    finish(world);
}

static void test_a_thread_that_is_traced_is_refused(void **state)
{
    (void)state;
    struct world *world = start(compute);
    struct observation seen = empty(world);
    assert_int_equal(ptrace(PTRACE_SEIZE, world->pid, NULL, NULL), 0);
    world->subject.look.at_ns = UINT64_MAX / 2;
    assert_int_equal(ptrace_source_observe(world->source, &world->subject, &seen), OUTCOME_REFUSED);
    finish(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_running_thread),
        cmocka_unit_test(test_visits_and_ticks),
        cmocka_unit_test(test_a_sleeping_thread_is_not_stopped),
        cmocka_unit_test(test_a_stop_in_its_sleep),
        cmocka_unit_test(test_an_end_that_was_seen),
        cmocka_unit_test(test_a_first_thread_that_died_is_not_waited_for),
        cmocka_unit_test(test_no_such_thread),
        cmocka_unit_test(test_a_zombie_is_gone),
        cmocka_unit_test(test_a_thread_that_is_traced_is_refused),
    };
    return cmocka_run_group_tests_name("stopped", tests, NULL, NULL);
}
