/* The summaries of dumps of a child that computes. */
#include "unit.h"
#include "recorder/recorder.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* If other programs want the CPUs, a thread may be runnable for a while without running. */
#define DUMPS_MAX 1000

static int set_up(void **state)
{
    static pid_t child;
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(100);
        for (volatile unsigned i = 0;; i++) {
        }
    }
    *state = &child;
    return child < 0;
}

static int tear_down(void **state)
{
    pid_t child = *(pid_t *)*state;
    kill(child, SIGKILL);
    return waitpid(child, NULL, 0) != child;
}

static struct fgprof_summary dump(pid_t child, enum fgprof_capture capture)
{
    struct fgprof_summary summary;
    struct fgprof_options *options;
    struct fgprof_recorder *recorder;
    struct fgprof_dump *made;
    assert_int_equal(fgprof_options_new(&options), 0);
    assert_int_equal(fgprof_options_set_capture(options, capture), 0);
    assert_int_equal(fgprof_recorder_new(options, &recorder), 0);
    assert_int_equal(fgprof_recorder_attach(recorder, child), 0);
    assert_int_equal(fgprof_recorder_dump(recorder, &made), 0);
    assert_int_equal(fgprof_dump_threads(made), 1);
    fgprof_dump_summary(made, &summary, sizeof summary);
    fgprof_dump_free(made);
    fgprof_recorder_free(recorder);
    fgprof_options_free(options);
    assert_int_equal(summary.samples, 1);
    return summary;
}

static void test_a_running_thread_is_sampled(void **state)
{
    const pid_t *child = *state;
    struct fgprof_summary summary = {0};
    for (int i = 0; i < DUMPS_MAX; i++) {
        summary = dump(*child, FGPROF_CAPTURE_AUTO);
        if (summary.kernel_refusal)
            skip();
        if (!summary.threads_stopped && summary.threads_kernel_sampled)
            break;
    }
    assert_true(summary.has_kernel_samples);
    assert_int_equal(summary.threads_kernel_sampled, 1);
    assert_int_equal(summary.kernel_samples, 1);
    assert_int_equal(summary.threads_stopped, 0);
    assert_int_equal(summary.pauses, 0);
}

static void test_a_running_thread_is_stopped(void **state)
{
    const pid_t *child = *state;
    const struct fgprof_summary summary = dump(*child, FGPROF_CAPTURE_PTRACE);
    assert_false(summary.has_kernel_samples);
    assert_int_equal(summary.kernel_refusal, 0);
    assert_int_equal(summary.kernel_samples, 0);
    assert_int_equal(summary.threads_kernel_sampled, 0);
    assert_int_equal(summary.threads_stopped, 1);
    assert_int_equal(summary.pauses, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_running_thread_is_sampled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_running_thread_is_stopped, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
