/* The programs of a child that executes another one. */
#include "unit.h"
#include "proc/maps.h"
#include "proc/program.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

struct child {
    pid_t pid;
    int order_fd; /* writing a byte makes it execute another program */
    struct process process;
};

static struct child start(void)
{
    struct child child;
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    child.pid = fork();
    if (child.pid == 0) {
        char order;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pipe_fds[1]);
        if (read(pipe_fds[0], &order, 1) == 1)
            execlp("sleep", "sleep", "100", (char *)NULL);
        _exit(1);
    }
    close(pipe_fds[0]);
    child.order_fd = pipe_fds[1];
    assert_int_equal(process_open(child.pid, &child.process), 0);
    return child;
}

static void end(struct child *child)
{
    kill(child->pid, SIGKILL);
    assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
    process_close(&child->process);
    close(child->order_fd);
}

static int count_line(void *context, const struct maps_entry *entry)
{
    (void)entry;
    ++*(unsigned *)context;
    return 0;
}

static unsigned lines(int maps_fd)
{
    unsigned count = 0;
    assert_int_equal(maps_read(maps_fd, count_line, &count), 0);
    return count;
}

static void test_it_ends_with_an_exec(void **state)
{
    (void)state;
    struct child child = start();
    struct program *program, *next;
    assert_int_equal(program_open(&child.process, 7, 3, &program), 0);
    assert_true(program_is_current(program));
    assert_int_equal(program->number, 7);
    assert_int_equal(program->process, 3);
    unsigned before = lines(program->maps_fd);
    assert_true(before > 3);
    assert_int_equal(program_kept_maps_fd(program), program->first_maps_fd);
    program_keep_maps(program);
    int later_fd = program_kept_maps_fd(program);
    assert_int_not_equal(later_fd, program->first_maps_fd);
    program_keep_maps(program);
    assert_int_not_equal(program_kept_maps_fd(program), later_fd);
    later_fd = program_kept_maps_fd(program);
    program_keep_maps(program); /* only so many are kept */
    assert_int_equal(program_kept_maps_fd(program), later_fd);
    assert_int_equal(write(child.order_fd, "x", 1), 1);
    while (program_is_current(program))
        usleep(1000);
    /* Its maps are empty now, but the first copy is kept. */
    assert_int_equal(lines(program->maps_fd), 0);
    assert_int_equal(lines(program->first_maps_fd), before);
    assert_int_equal(lines(program_kept_maps_fd(program)), before);
    assert_int_equal(program_open(&child.process, 8, 3, &next), 0);
    assert_true(program_is_current(next));
    program_release(program);
    program_release(next);
    end(&child);
}

static void test_a_process_that_has_ended(void **state)
{
    (void)state;
    struct child child = start();
    struct program *program;
    kill(child.pid, SIGKILL);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(program_open(&child.process, 0, 0, &program), -ESRCH);
    end(&child);
}

/* A copy of the maps that is larger than a file may be would end this process. */
static void test_a_small_limit_of_files(void **state)
{
    (void)state;
    struct child child = start();
    struct program *program;
    struct rlimit before, none;
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = (struct rlimit){0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    int err = program_open(&child.process, 0, 0, &program);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(err, 0);
    assert_int_equal(program->first_maps_fd, -1);
    program_release(program);
    end(&child);
}

static void test_the_last_reference_closes_it(void **state)
{
    (void)state;
    struct child child = start();
    struct program *program;
    assert_int_equal(program_open(&child.process, 0, 0, &program), 0);
    int fd = program->maps_fd;
    assert_ptr_equal(program_hold(program), program);
    program_release(program);
    assert_true(fcntl(fd, F_GETFD) >= 0);
    program_release(program);
    assert_true(fcntl(fd, F_GETFD) < 0);
    program_release(NULL);
    end(&child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_ends_with_an_exec),
        cmocka_unit_test(test_a_process_that_has_ended),
        cmocka_unit_test(test_a_small_limit_of_files),
        cmocka_unit_test(test_the_last_reference_closes_it),
    };
    return cmocka_run_group_tests_name("program", tests, NULL, NULL);
}
