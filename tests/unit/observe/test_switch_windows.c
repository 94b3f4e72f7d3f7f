/* A child that sleeps again and again. Skipped if the kernel does not permit events. */
#include "unit.h"
#include "refuse_events.h"
#include "base/clock.h"
#include "observe/snapshot_pool.h"
#include "observe/switches.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define COPIED_BYTES 16384u
#define HANGS_NS 100000000000ull
#define PLACES 2

struct place {
    uint64_t pc, sp;
};

struct world {
    pid_t pid;
    int wake_fd, asleep_fd;
    struct stack_areas areas;
    struct switches *windows;
    struct snapshot snapshot;
    struct watch watch;
};

__attribute__((noinline)) static void sleep_deeper(int fd, char *byte)
{
    volatile char deeper[256];
    deeper[0] = 0;
    if (read(fd, byte, 1) != 1)
        _exit(deeper[0]);
}

/* Answers each byte with one, and sleeps in one of two places in between. */
static void answer(int from_fd, int to_fd)
{
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(100);
    for (;;) {
        if (read(from_fd, &byte, 1) != 1 || write(to_fd, &byte, 1) != 1)
            _exit(0);
        sleep_deeper(from_fd, &byte);
        if (write(to_fd, &byte, 1) != 1)
            _exit(0);
    }
}

static struct world *set_up(void)
{
    static struct world world;
    static const struct stack_place none = {0};
    int to_child[2], from_child[2];
    world = (struct world){0};
    assert_int_equal(pipe(to_child), 0);
    assert_int_equal(pipe(from_child), 0);
    world.pid = fork();
    if (world.pid == 0)
        answer(to_child[0], from_child[1]);
    world.wake_fd = to_child[1];
    world.asleep_fd = from_child[0];
    close(to_child[0]);
    close(from_child[1]);
    assert_true(snapshot_make_room(&world.snapshot, COPIED_BYTES, &none));
    assert_int_equal(switches_new(&world.windows), 0);
    return &world;
}

static void tear_down(struct world *world)
{
    kill(world->pid, SIGKILL);
    waitpid(world->pid, NULL, 0);
    switches_free(world->windows);
    snapshot_clear(&world->snapshot);
    close(world->wake_fd);
    close(world->asleep_fd);
}

/* Where the child sleeps in read(2). */
static struct place await_asleep(const struct world *world)
{
    char path[64], line[256] = "";
    unsigned long long sp, pc;
    long call = -1;
    snprintf(path, sizeof path, "/proc/%d/syscall", world->pid);
    while (sscanf(line, "%ld %*x %*x %*x %*x %*x %*x %llx %llx", &call, &sp, &pc) != 3 ||
           call != SYS_read) {
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_non_null(fgets(line, sizeof line, file));
        fclose(file);
    }
    return (struct place){pc, sp};
}

/* Wakes the child. Returns where it sleeps then. */
static struct place wake(const struct world *world)
{
    char byte = 1;
    assert_int_equal(write(world->wake_fd, &byte, 1), 1);
    assert_int_equal(read(world->asleep_fd, &byte, 1), 1);
    return await_asleep(world);
}

static void add(struct world *world)
{
    int err = switches_add(world->windows, SWITCHES_IN_WINDOW, 1, world->pid);
    if (event_is_refused(err)) {
        tear_down(world);
        skip();
    }
    assert_int_equal(err, 0);
}

/* What a look now, for a tick at that time, makes of it. */
static enum outcome observe(struct world *world, uint64_t tick_ns, enum outcome outcome,
                            struct observation *ret_observation)
{
    long call = ret_observation->wait.syscall_number;
    const struct subject subject = {.thread = 1,
                                    .process_id = world->pid,
                                    .tid = world->pid,
                                    .tick_ns = tick_ns,
                                    .stack_areas = &world->areas,
                                    .stack_limit = COPIED_BYTES};
    *ret_observation = (struct observation){
        .snapshot = &world->snapshot,
        .now = {.at_ns = monotonic_ns(), .has_activity = true, .activity.switches = 100},
        .wait.syscall_number = call,
    };
    world->watch.is_asleep = true;
    return switches_observe_at_tick(world->windows, &subject, &world->watch, outcome,
                                    ret_observation);
}

/* That the thread was found running is all that is known. */
static void assert_unknown(struct world *world, uint64_t tick_ns)
{
    struct observation observation = {.wait.syscall_number = -1};
    assert_int_equal(observe(world, tick_ns, OUTCOME_RUNNING, &observation), OUTCOME_RUNNING);
    assert_int_equal(observation.record.returned_ns, 0);
}

/* Opens a window in which the child falls asleep. Returns where. */
static struct place open_window(struct world *world)
{
    assert_int_equal(switches_open_windows(world->windows, monotonic_ns()), UINT64_MAX);
    return wake(world);
}

static void check_place(const struct world *world, const struct observation *observation,
                        struct place place)
{
    assert_int_equal(observation->evidence, EVIDENCE_ASLEEP);
    assert_int_equal(observation->state, THREAD_SLEEPING);
    assert_true(observation->asleep.is_over);
    assert_int_equal(registers_pc(&world->snapshot.registers), place.pc);
    assert_int_equal(registers_sp(&world->snapshot.registers), place.sp);
    assert_true(registers_has(&world->snapshot.registers, architecture.frame_pointer));
    assert_int_equal(world->snapshot.stack.address, place.sp);
    assert_true(world->snapshot.stack.old_bytes > 0);
    assert_true(world->snapshot.stack.bytes >= world->snapshot.stack.old_bytes);
    assert_false(world->watch.is_asleep);
}

static void test_a_sleep_that_is_over(void **state)
{
    (void)state;
    struct world *world = set_up();
    struct observation observation = {.wait.syscall_number = -1};
    add(world);
    for (int i = 0; i < PLACES; i++) {
        struct place place = open_window(world);
        uint64_t asleep_ns = monotonic_ns();
        wake(world);
        assert_int_equal(observe(world, asleep_ns, OUTCOME_RUNNING, &observation),
                         OUTCOME_OBSERVED);
        check_place(world, &observation, place);
        assert_true(observation.record.returned_ns > asleep_ns);
        assert_true(observation.now.activity.switches < 100);
        assert_int_equal(observation.wait.syscall_number, -1);
        /* A second look at the same tick. */
        assert_int_equal(observe(world, asleep_ns, OUTCOME_OBSERVED, &observation),
                         OUTCOME_OBSERVED);
        check_place(world, &observation, place);
        switches_close_windows(world->windows);
    }
    tear_down(world);
}

/* A look finds the child in this place, in this call. */
static void look(struct world *world, struct place place, long call)
{
    struct observation observation = {.wait.syscall_number = call};
    world->snapshot.registers = (struct registers){.interrupted_call = -1};
    registers_set(&world->snapshot.registers, architecture.pc, place.pc);
    registers_set(&world->snapshot.registers, architecture.sp, place.sp);
    assert_int_equal(observe(world, monotonic_ns(), OUTCOME_OBSERVED, &observation),
                     OUTCOME_OBSERVED);
    assert_int_equal(observation.record.returned_ns, 0);
}

/* The call is known if a look has found it there before. */
static void test_its_call(void **state)
{
    (void)state;
    struct world *world = set_up();
    struct observation observation;
    struct place places[PLACES];
    add(world);
    for (int i = 0; i < PLACES; i++)
        places[i] = wake(world);
    for (int i = 0; i < 2 * PLACES; i++) {
        observation.wait.syscall_number = -1;
        open_window(world);
        uint64_t asleep_ns = monotonic_ns();
        wake(world);
        assert_int_equal(observe(world, asleep_ns, OUTCOME_RUNNING, &observation),
                         OUTCOME_OBSERVED);
        assert_int_equal(observation.wait.syscall_number, i < PLACES ? -1 : SYS_read);
        switches_close_windows(world->windows);
        if (i < PLACES - 1)
            continue;
        open_window(world);
        look(world, places[i % PLACES], SYS_read);
        switches_close_windows(world->windows);
    }
    tear_down(world);
}

/* It has been woken, as the look found, but has not had a CPU. */
static void test_a_sleep_that_is_not_over(void **state)
{
    (void)state;
    struct world *world = set_up();
    struct observation observation = {.wait.syscall_number = -1};
    add(world);
    struct place place = open_window(world);
    uint64_t asleep_ns = monotonic_ns();
    /* Where it is now. */
    assert_int_equal(observe(world, asleep_ns, OUTCOME_OBSERVED, &observation), OUTCOME_OBSERVED);
    assert_int_equal(observation.record.returned_ns, 0);
    assert_true(world->watch.is_asleep);
    assert_int_equal(observe(world, asleep_ns, OUTCOME_UNMOVED, &observation), OUTCOME_UNMOVED);
    assert_int_equal(observe(world, asleep_ns, OUTCOME_RUNNING, &observation), OUTCOME_OBSERVED);
    check_place(world, &observation, place);
    assert_int_equal(observation.now.activity.switches, 100);
    tear_down(world);
}

static void test_one_that_was_awake(void **state)
{
    (void)state;
    struct world *world = set_up();
    struct observation observation;
    add(world);
    open_window(world);
    uint64_t asleep_ns = monotonic_ns();
    wake(world);
    assert_int_equal(observe(world, asleep_ns, OUTCOME_RUNNING, &observation), OUTCOME_OBSERVED);
    uint64_t awake_ns = observation.record.returned_ns;
    assert_true(awake_ns > asleep_ns);
    assert_int_equal(observe(world, awake_ns, OUTCOME_RUNNING, &observation), OUTCOME_RUNNING);
    assert_int_equal(observe(world, awake_ns, OUTCOME_OBSERVED, &observation), OUTCOME_ASLEEP);
    assert_false(world->watch.is_asleep);
    tear_down(world);
}

/* It fell asleep before the window, and the look found another sleep. That must be soon after the
 * tick, which a busy machine may prevent; and a thread that is about to sleep may not have left its
 * CPU when the window opens. */
static void test_a_sleep_of_before_the_window(void **state)
{
    (void)state;
    struct world *world = set_up();
    struct observation observation;
    enum outcome outcome = OUTCOME_OBSERVED;
    uint64_t until_ns = monotonic_ns() + HANGS_NS;
    add(world);
    while (outcome != OUTCOME_REFUSED && monotonic_ns() < until_ns) {
        switches_open_windows(world->windows, monotonic_ns());
        uint64_t asleep_ns = monotonic_ns();
        wake(world);
        outcome = observe(world, asleep_ns, OUTCOME_OBSERVED, &observation);
        switches_close_windows(world->windows);
    }
    assert_int_equal(outcome, OUTCOME_REFUSED);
    assert_false(world->watch.is_asleep);
    tear_down(world);
}

/* The same instruction makes several calls. */
static void test_calls_that_are_not_known(void **state)
{
    (void)state;
    struct world *world = set_up();
    struct observation observation;
    add(world);
    struct place place = open_window(world);
    uint64_t asleep_ns = monotonic_ns();
    wake(world);
    for (int i = 0; i < 3; i++) {
        look(world, place, i == 1 ? SYS_write : SYS_read);
        observation.wait.syscall_number = -1;
        assert_int_equal(observe(world, asleep_ns, OUTCOME_RUNNING, &observation),
                         OUTCOME_OBSERVED);
        assert_int_equal(observation.wait.syscall_number, i == 0 ? SYS_read : -1);
    }
    tear_down(world);
}

static void test_sleeps_that_are_not_known(void **state)
{
    (void)state;
    struct world *world = set_up();
    struct observation observation = {.wait.syscall_number = -1};
    add(world);
    open_window(world);
    switches_close_windows(world->windows);
    assert_unknown(world, monotonic_ns()); /* there is no window */
    assert_int_equal(switches_open_windows(world->windows, monotonic_ns()), UINT64_MAX);
    uint64_t asleep_ns = monotonic_ns();
    wake(world);
    assert_unknown(world, asleep_ns); /* it fell asleep before the window */
    switches_close_windows(world->windows);
    asleep_ns = monotonic_ns(); /* before the window */
    open_window(world);
    assert_unknown(world, asleep_ns);
    wake(world);
    assert_int_equal(observe(world, monotonic_ns(), OUTCOME_RUNNING, &observation),
                     OUTCOME_OBSERVED);
    switches_close_windows(world->windows);
    open_window(world);
    asleep_ns = monotonic_ns();
    for (int i = 0; i < 100; i++)
        wake(world);
    assert_unknown(world, asleep_ns); /* overwritten */
    tear_down(world);
}

static void test_when_windows_open(void **state)
{
    (void)state;
    struct world *world = set_up();
    uint64_t later_ns = monotonic_ns() + HANGS_NS;
    assert_int_equal(switches_open_windows(NULL, 0), UINT64_MAX);
    assert_int_equal(switches_open_windows(world->windows, later_ns), UINT64_MAX); /* for nobody */
    add(world);
    assert_int_equal(switches_add(world->windows, SWITCHES_IN_WINDOW, 1, world->pid),
                     0); /* it has one */
    assert_int_equal(switches_open_windows(world->windows, later_ns), later_ns);
    assert_int_equal(switches_open_windows(world->windows, monotonic_ns()), UINT64_MAX);
    assert_int_equal(switches_open_windows(world->windows, later_ns), UINT64_MAX); /* it is open */
    switches_close_windows(world->windows);
    assert_int_equal(switches_open_windows(world->windows, later_ns), later_ns);
    switches_drop(world->windows, SWITCHES_IN_WINDOW, 1);
    assert_int_equal(switches_open_windows(world->windows, later_ns), UINT64_MAX);
    assert_unknown(world, monotonic_ns());
    tear_down(world);
}

static void test_how_many_have_one(void **state)
{
    (void)state;
    struct world *world = set_up();
    add(world);
    uint32_t thread = 2;
    int err = 0;
    while (!err && thread < 1000)
        err = switches_add(world->windows, SWITCHES_IN_WINDOW, thread++, world->pid);
    assert_true(err == -ENOSPC || err == -ENOBUFS || err == -EMFILE);
    switches_drop(world->windows, SWITCHES_IN_WINDOW, 1);
    assert_int_equal(switches_add(world->windows, SWITCHES_IN_WINDOW, thread, world->pid), 0);
    tear_down(world);
}

/* A thread that has just ended keeps no other from having one. */
static void test_a_thread_that_has_ended_has_none(void **state)
{
    (void)state;
    struct world *world = set_up();
    pid_t ended = fork();
    if (ended == 0)
        _exit(0);
    assert_int_equal(waitpid(ended, NULL, 0), ended);
    add(world);
    switches_drop(world->windows, SWITCHES_IN_WINDOW, 1);
    assert_int_equal(switches_add(world->windows, SWITCHES_IN_WINDOW, 2, ended), -ESRCH);
    assert_int_equal(switches_add(world->windows, SWITCHES_IN_WINDOW, 1, world->pid), 0);
    tear_down(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sleep_that_is_over),
        cmocka_unit_test(test_its_call),
        cmocka_unit_test(test_a_sleep_that_is_not_over),
        cmocka_unit_test(test_one_that_was_awake),
        cmocka_unit_test(test_a_sleep_of_before_the_window),
        cmocka_unit_test(test_calls_that_are_not_known),
        cmocka_unit_test(test_sleeps_that_are_not_known),
        cmocka_unit_test(test_when_windows_open),
        cmocka_unit_test(test_how_many_have_one),
        cmocka_unit_test(test_a_thread_that_has_ended_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
