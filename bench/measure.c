/* Runs a command and reports its cost: bench-measure FD COMMAND [ARGUMENT...] writes two lines to
 * FD,
 *   PID                                           of the command, when it has started
 *   STATUS WALL_NS USER_US SYSTEM_US MAX_RSS_KIB  when it has ended
 * where STATUS is its exit status, or minus the number of the signal that killed it.
 *
 * This is a program of its own because a process's peak of memory starts at that of the process
 * that started it (execve's setmax_mm_hiwater_rss in the kernel's exec.c), and a script's
 * interpreter would be larger than what is measured. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static long microseconds(struct timeval time)
{
    return (long)time.tv_sec * 1000000 + (long)time.tv_usec;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: bench-measure FD COMMAND [ARGUMENT...]\n");
        return 2;
    }
    int fd = atoi(argv[1]), status;
    struct rusage usage;
    /* Nothing outlives the process that waits for it: this program ends with its starter, and the
     * command with this program. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    uint64_t begin_ns = now_ns();
    pid_t pid = fork();
    if (pid == 0) {
        close(fd);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    if (pid < 0) {
        perror("fork");
        return 1;
    }
    dprintf(fd, "%d\n", (int)pid);
    if (wait4(pid, &status, 0, &usage) != pid)
        return 1;
    dprintf(fd, "%d %lu %ld %ld %ld\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
            (unsigned long)(now_ns() - begin_ns), microseconds(usage.ru_utime),
            microseconds(usage.ru_stime), usage.ru_maxrss);
    return 0;
}
