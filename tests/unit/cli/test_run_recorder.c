/* Signals for a spawned command, including those that arrive before it is started. */
#include "unit.h"
#include "cli/run_recorder.h"

#include <signal.h>
#include <sys/wait.h>

static void test_a_signal_that_comes_early_reaches_the_command(void **state)
{
    (void)state;
    char sleep[] = "sleep", seconds[] = "1000", *sleeper[] = {sleep, seconds, NULL};
    fgprof_options *options;
    fgprof_recorder *recorder;
    int status;
    assert_int_equal(fgprof_options_new(&options), 0);
    assert_int_equal(fgprof_recorder_new(options, &recorder), 0);
    fgprof_options_free(options);
    interrupt_forwards(recorder);
    raise(SIGTERM);
    assert_int_equal(fgprof_recorder_spawn(recorder, sleeper, -1), 0);
    interrupt_forward_early(recorder);
    assert_int_equal(fgprof_recorder_wait(recorder, &status), 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    fgprof_recorder_free(recorder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_signal_that_comes_early_reaches_the_command),
    };
    return cmocka_run_group_tests_name("run_recorder", tests, NULL, NULL);
}
