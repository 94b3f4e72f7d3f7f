/* A spawned command: its process id is known until it has been waited for, in a signal handler too.
 */
#include "unit.h"
#include "fgprof.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static fgprof_recorder *recorder;
static volatile pid_t seen;

static void look(int number)
{
    (void)number;
    seen = fgprof_recorder_child(recorder);
}

static int set_up(void **state)
{
    (void)state;
    fgprof_options *options;
    assert_int_equal(fgprof_options_new(&options), 0);
    assert_int_equal(fgprof_options_set_children(options, true), 0);
    assert_int_equal(fgprof_recorder_new(options, &recorder), 0);
    fgprof_options_free(options);
    return signal(SIGALRM, look) == SIG_ERR;
}

static int tear_down(void **state)
{
    (void)state;
    signal(SIGALRM, SIG_DFL);
    fgprof_recorder_free(recorder);
    return 0;
}

static void spawn(const char *script)
{
    char *const arguments[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    assert_int_equal(fgprof_recorder_spawn(recorder, arguments, -1), 0);
}

static void test_child_until_it_was_waited_for(void **state)
{
    (void)state;
    int status;
    assert_int_equal(fgprof_recorder_child(recorder), 0);
    assert_int_equal(fgprof_recorder_wait(recorder, &status), -ECHILD);
    spawn("exit 7");
    pid_t child = fgprof_recorder_child(recorder);
    assert_true(child > 0);
    raise(SIGALRM);
    assert_int_equal(seen, child);
    assert_int_equal(fgprof_recorder_wait(recorder, &status), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    raise(SIGALRM);
    assert_int_equal(seen, 0);
    assert_int_equal(fgprof_recorder_wait(recorder, &status), -ECHILD);
    char shell[] = "true", *again[] = {shell, NULL};
    assert_int_equal(fgprof_recorder_spawn(recorder, again, -1), -EEXIST);
}

/* Meanwhile the sampler's own tables change at each birth and death. */
static void test_child_in_a_handler_while_processes_come_and_go(void **state)
{
    (void)state;
    fgprof_profile *profile;
    int status;
    spawn("for i in 1 2 3 4 5 6 7 8 9; do sleep 0.01 & sleep 0.01; done; exit 3");
    pid_t child = fgprof_recorder_child(recorder);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    struct itimerspec often = {{0, 200000}, {0, 200000}};
    timer_t timer;
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
    assert_int_equal(fgprof_recorder_run(recorder, &profile), 0);
    timer_delete(timer);
    assert_true(seen == child || seen == 0);
    assert_int_equal(fgprof_recorder_wait(recorder, &status), 0);
    assert_int_equal(WEXITSTATUS(status), 3);
    fgprof_profile_free(profile);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_child_until_it_was_waited_for),
        TEST(test_child_in_a_handler_while_processes_come_and_go),
    };
    return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
