/* Through which thread a process is read. */
#include "unit.h"
#include "observe/observation.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define ENDED 0x7fffffff /* no thread has this id */

static pid_t live_tid(int proc_fd, pid_t process_id)
{
    struct program program = {.process_id = process_id, .proc_fd = proc_fd};
    const struct observation observation = {.tid = ENDED, .program = &program};
    return observation_live_tid(&observation);
}

/* The thread has exited between its observation and the read. */
static void test_a_thread_that_has_ended(void **state)
{
    (void)state;
    int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(live_tid(proc_fd, getpid()), getpid());
    close(proc_fd);
}

/* If the first thread has exited, another one may still live. */
static void test_a_first_thread_that_has_ended(void **state)
{
    (void)state;
    char path[32];
    siginfo_t end;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitid(P_PID, (id_t)child, &end, WEXITED | WNOWAIT), 0);
    snprintf(path, sizeof path, "/proc/%d", child);
    int proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(proc_fd >= 0);
    assert_int_equal(live_tid(proc_fd, child), ENDED);
    close(proc_fd);
    waitpid(child, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thread_that_has_ended),
        cmocka_unit_test(test_a_first_thread_that_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
