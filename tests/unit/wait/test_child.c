#include "unit.h"
#include "wait/child.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static pid_t waited_for(int proc_fd, long number, uint64_t a, uint64_t b)
{
    const uint64_t arguments[6] = {a, b};
    struct call_target target = call_target_of(number, arguments);
    assert_int_equal(target.kind, CALL_PROCESS);
    return child_waited_for(proc_fd, getpid(), &target);
}

static pid_t start_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    assert_true(child > 0);
    return child;
}

static void end_child(pid_t child)
{
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void test_children(void **state)
{
    (void)state;
    int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY);
    assert_int_equal(waited_for(proc_fd, SYS_wait4, (uint64_t)-1, 0), 0);
    pid_t first = start_child();
    assert_int_equal(waited_for(proc_fd, SYS_wait4, (uint64_t)-1, 0), first);
    assert_int_equal(waited_for(proc_fd, SYS_wait4, 0, 0), first);
    assert_int_equal(waited_for(proc_fd, SYS_waitid, P_ALL, 0), first);
    pid_t second = start_child();
    /* If there are two children, the one it waits for is unknown. */
    assert_int_equal(waited_for(proc_fd, SYS_wait4, (uint64_t)-1, 0), 0);
    assert_int_equal(waited_for(proc_fd, SYS_wait4, (uint64_t)second, 0), second);
    assert_int_equal(waited_for(proc_fd, SYS_waitid, P_PID, (uint64_t)first), first);
    int pid_fd = (int)syscall(SYS_pidfd_open, second, 0);
    if (pid_fd >= 0) {
        assert_int_equal(waited_for(proc_fd, SYS_waitid, 3, (uint64_t)pid_fd), second);
        close(pid_fd);
    }
    assert_int_equal(waited_for(proc_fd, SYS_waitid, 3, 0x7ffffff0), 0);
    end_child(first);
    end_child(second);
    close(proc_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_children)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
