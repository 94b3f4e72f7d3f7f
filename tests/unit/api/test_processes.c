/* Finding processes by name. */
#include "unit.h"
#include "fgprof.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Starts a child with this name, which waits to be killed. */
static pid_t start_child(const char *name)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_NAME, name);
        ssize_t written = write(ready[1], "r", 1);
        (void)written;
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void test_a_living_process_is_found_and_a_zombie_is_not(void **state)
{
    (void)state;
    pid_t *pids;
    size_t count;
    char name[32];
    siginfo_t info;
    pid_t child = start_child("found (by) it");
    assert_int_equal(fgprof_find_processes("^found \\(b.\\) it$", &pids, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(pids[0], child);
    free(pids);
    assert_true(fgprof_process_name(child, name, sizeof name));
    assert_string_equal(name, "found (by) it");
    assert_true(fgprof_process_name(child, name, 6));
    assert_string_equal(name, "found");
    kill(child, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(fgprof_find_processes("^found \\(b.\\) it$", &pids, &count), 0);
    assert_int_equal(count, 0);
    free(pids);
    waitpid(child, NULL, 0);
    assert_false(fgprof_process_name(child, name, sizeof name));
    assert_string_equal(name, "");
}

static void test_what_is_no_expression_is_refused(void **state)
{
    (void)state;
    pid_t *pids = NULL;
    size_t count = 7;
    assert_int_equal(fgprof_find_processes("(", &pids, &count), -EINVAL);
    assert_null(pids);
    assert_int_equal(count, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_living_process_is_found_and_a_zombie_is_not),
        cmocka_unit_test(test_what_is_no_expression_is_refused),
    };
    return cmocka_run_group_tests_name("processes", tests, NULL, NULL);
}
