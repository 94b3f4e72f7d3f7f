/* Which samples of children that compute the BPF programs pass. Skipped if the kernel does not
 * permit the programs. For page faults, see objects/test_faults.c. */
#include "unit.h"
#include "observe/bpf/perf_filter.h"
#include "observe/bpf/process_set.h"
#include "observe/events.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define PERIOD_NS 1000000u
#define COMPUTED_NS 20000000 /* some samples, if none are dropped */
#define SKIPPED 77

struct world {
    struct filter filter;
    struct events events;
    pid_t pids[2];
};

/* Starts a child; `is_inner`: in a new PID namespace, as all later children of this process. */
static pid_t start_child(bool is_inner)
{
    if (is_inner && unshare(CLONE_NEWPID))
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(100);
        for (volatile unsigned i = 0;; i++) {
        }
    }
    return pid;
}

static int begin(struct world *world, bool is_inner)
{
    *world = (struct world){.pids = {start_child(false), start_child(is_inner)}};
    int err = filter_open(&world->filter);
    world->events = (struct events){
        .attr = {.type = PERF_TYPE_SOFTWARE,
                 .config = PERF_COUNT_SW_CPU_CLOCK,
                 .sample_period = PERIOD_NS,
                 .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
                 .disabled = 1},
        .ring_bytes = 1u << 18,
        .ring_bytes_min = 1u << 14,
        .filter = &world->filter,
    };
    return err ? err : events_update_cpus(&world->events);
}

static void end(struct world *world)
{
    for (int i = 0; i < 2; i++) {
        kill(world->pids[i], SIGKILL);
        waitpid(world->pids[i], NULL, 0);
    }
    events_free(&world->events);
    filter_close(&world->filter);
}

static int64_t cpu_ns_of(pid_t pid)
{
    clockid_t clock;
    struct timespec now = {0};
    if (clock_getcpuclockid(pid, &clock) == 0)
        clock_gettime(clock, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

static void take_samples(struct world *world, unsigned counts[2])
{
    struct record record;
    uint32_t process_id;
    for (size_t i = 0; i < world->events.count; i++) {
        struct ring *ring = &world->events.items[i].ring;
        for (; ring_next(ring, &record); ring_skip(ring, &record)) {
            if (record.header.type != PERF_RECORD_SAMPLE ||
                !record_read(&record, 0, &process_id, sizeof process_id))
                continue;
            counts[0] += process_id == (uint32_t)world->pids[0];
            counts[1] += process_id == (uint32_t)world->pids[1];
        }
    }
}

/* Lets both compute, and then counts how many samples of each have passed. */
static void compute(struct world *world, unsigned ret_counts[2])
{
    int64_t begin_ns[2];
    unsigned before[2];
    take_samples(world, before);
    ret_counts[0] = ret_counts[1] = 0;
    for (int i = 0; i < 2; i++)
        begin_ns[i] = cpu_ns_of(world->pids[i]);
    for (int i = 0; i < 2; i++) {
        while (cpu_ns_of(world->pids[i]) < begin_ns[i] + COMPUTED_NS)
            sched_yield();
    }
    take_samples(world, ret_counts);
}

/* Returns 0, or the number of the check that failed. */
static int check_followed(struct world *world)
{
    unsigned counts[2];
    if (events_follow(&world->events, world->pids[0]) || !world->filter.is_exact)
        return 1;
    compute(world, counts);
    if (!counts[0] || counts[1])
        return 2;
    if (events_follow(&world->events, world->pids[1]))
        return 3;
    compute(world, counts);
    if (!counts[0] || !counts[1])
        return 4;
    events_unfollow(&world->events, world->pids[0]);
    compute(world, counts); /* it may have been sampled just before */
    compute(world, counts);
    return !counts[0] && counts[1] ? 0 : 5;
}

static void test_followed_processes_pass(void **state)
{
    (void)state;
    struct world world;
    int err = begin(&world, false);
    if (err) {
        end(&world);
        assert_true(err == -EPERM || err == -EACCES || err == -ENOSYS || err == -ENOENT);
        skip();
    }
    assert_int_equal(check_followed(&world), 0);
    assert_int_equal(filter_add(&world.filter, -1), -EINVAL);
    assert_int_equal(filter_add(&world.filter, PROCESS_IDS), -EINVAL);
    filter_remove(&world.filter, -1);
    filter_remove(&world.filter, PROCESS_IDS);
    end(&world);
}

static int status_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The second child is in a namespace inside ours: it passes with those of all other namespaces. */
static int check_inner(void)
{
    struct world world;
    unsigned counts[2];
    int status = 0;
    if (begin(&world, true))
        status = SKIPPED;
    else if (events_follow(&world.events, world.pids[1]) || world.filter.is_exact)
        status = 6;
    if (!status) {
        compute(&world, counts);
        status = !counts[0] && counts[1] ? 0 : 7;
    }
    end(&world);
    return status;
}

static int check_namespace(void)
{
    struct world world;
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("proc", "/proc", "proc", 0, NULL))
        return SKIPPED;
    int status = begin(&world, false) ? SKIPPED : check_followed(&world);
    end(&world);
    return status ? status : check_inner();
}

static void test_in_a_pid_namespace(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWPID | CLONE_NEWNS))
            _exit(SKIPPED);
        pid = fork();
        if (pid == 0)
            _exit(check_namespace());
        _exit(status_of(pid));
    }
    int status = status_of(pid);
    if (status == SKIPPED)
        skip();
    assert_int_equal(status, 0);
}

/* libbpf would report it to stderr, which is the user's. */
static void test_a_refusal_is_silent(void **state)
{
    (void)state;
    int written = memfd_create("stderr", MFD_CLOEXEC);
    pid_t pid = fork();
    if (pid == 0) {
        struct filter filter;
        dup2(written, STDERR_FILENO);
        if (geteuid() == 0 && setuid(65534))
            _exit(SKIPPED);
        int err = filter_open(&filter), pages_err = filter_open_for_pages(1, &filter);
        _exit(err && pages_err && !filter.programs ? 0 : 1);
    }
    int status = status_of(pid);
    if (status == SKIPPED)
        skip();
    assert_int_equal(status, 0);
    assert_int_equal(lseek(written, 0, SEEK_END), 0);
    close(written);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_followed_processes_pass),
        cmocka_unit_test(test_in_a_pid_namespace),
        cmocka_unit_test(test_a_refusal_is_silent),
    };
    return cmocka_run_group_tests_name("perf filter", tests, NULL, NULL);
}
