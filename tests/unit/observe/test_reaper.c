/* Dead threads are collected while nothing else waits for them. Children stand for traced threads:
 * both are waited for by their ids. */
#include "unit.h"
#include "observe/reaper.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>

static struct reaper *reaper;

static int set_up(void **state)
{
    (void)state;
    return reaper_new(&reaper);
}

static int tear_down(void **state)
{
    (void)state;
    reaper_free(reaper);
    reaper = NULL;
    return 0;
}

static pid_t child(void)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    while (!pid)
        pause();
    return pid;
}

/* Whether it has exited and was not collected. */
static bool is_left(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

static void end_child(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
}

/* Hangs if it is not collected. */
static void await_collected(pid_t pid)
{
    siginfo_t info;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        usleep(1000);
    assert_int_equal(errno, ECHILD);
}

static void collect(pid_t pid)
{
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_the_dead_are_collected(void **state)
{
    (void)state;
    pid_t first = child(), second = child();
    assert_int_equal(reaper_hold(reaper, first), 0);
    assert_int_equal(reaper_hold(reaper, second), 0);
    reaper_watch(reaper);
    end_child(second);
    await_collected(second);
    end_child(first);
    await_collected(first);
}

static void test_one_that_is_given_up_is_collected(void **state)
{
    (void)state;
    pid_t pid = child();
    assert_int_equal(reaper_hold(reaper, pid), 0);
    reaper_abandon(reaper, pid);
    end_child(pid);
    await_collected(pid);
}

static void test_others_are_left(void **state)
{
    (void)state;
    pid_t dropped = child(), stranger = child(), held = child();
    assert_int_equal(reaper_hold(reaper, dropped), 0);
    assert_int_equal(reaper_hold(reaper, held), 0);
    reaper_drop(reaper, dropped);
    reaper_watch(reaper);
    end_child(dropped);
    end_child(stranger);
    while (!is_left(dropped) || !is_left(stranger))
        usleep(1000);
    end_child(held);
    await_collected(held);
    assert_true(is_left(dropped));
    assert_true(is_left(stranger));
    collect(dropped);
    collect(stranger);
}

static void test_none_is_held_any_more(void **state)
{
    (void)state;
    pid_t before = child(), held = child();
    assert_int_equal(reaper_hold(reaper, before), 0);
    reaper_forget_all(reaper);
    assert_int_equal(reaper_hold(reaper, held), 0);
    reaper_watch(reaper);
    end_child(before);
    while (!is_left(before))
        usleep(1000);
    end_child(held);
    await_collected(held);
    assert_true(is_left(before));
    collect(before);
}

/* While `is_wanted`, the reaper, thread `tid`, waits with its lock taken. */
static struct {
    atomic_bool is_wanted;
    atomic_int tid;
} delay;

int __real_waitid(idtype_t type, id_t id, siginfo_t *info, int options);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    while (atomic_load(&delay.is_wanted)) {
        atomic_store(&delay.tid, gettid());
        usleep(1000);
    }
    return __real_waitid(type, id, info, options);
}

/* Whether that thread of ours has a real-time priority now (proc(5), stat). */
static bool runs_first(int tid)
{
    char path[64], line[512];
    int priority;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    assert_int_equal(sscanf(strrchr(line, ')'),
                            ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %d",
                            &priority),
                     1);
    return priority < 0;
}

static atomic_bool is_refused;

static void *drop(void *pid)
{
    const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_RR)};
    atomic_store(&is_refused, sched_setscheduler(0, SCHED_RR, &lowest) != 0);
    reaper_drop(reaper, *(pid_t *)pid);
    return NULL;
}

/* The sampling thread runs before others while it holds stopped threads. When it waits for the
 * reaper's lock, so does the reaper. Hangs if it does not. */
static void test_the_lock_passes_on_priority(void **state)
{
    (void)state;
    pid_t pid = child();
    pthread_t thread;
    assert_int_equal(reaper_hold(reaper, pid), 0);
    atomic_store(&delay.is_wanted, true);
    reaper_watch(reaper);
    while (!atomic_load(&delay.tid))
        usleep(1000);
    assert_false(runs_first(atomic_load(&delay.tid)));
    assert_int_equal(pthread_create(&thread, NULL, drop, &pid), 0);
    while (!runs_first(atomic_load(&delay.tid)) && !atomic_load(&is_refused))
        usleep(1000);
    atomic_store(&delay.is_wanted, false);
    assert_int_equal(pthread_join(thread, NULL), 0);
    end_child(pid);
    collect(pid);
    if (atomic_load(&is_refused))
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_dead_are_collected, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_that_is_given_up_is_collected, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_others_are_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_none_is_held_any_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_lock_passes_on_priority, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("reaper", tests, NULL, NULL);
}
