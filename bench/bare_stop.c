/* bench-bare-stop PID: at 99 Hz stops each of the process's threads that is not asleep, one after
 * the other, with only what a stop requires: PTRACE_SEIZE, INTERRUPT, the registers, 1 KiB of
 * stack, DETACH. It is the lower bound for a sampler that uses ptrace, on this machine at this
 * time. Runs until it is killed. */
#include <dirent.h>
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#define PERIOD_NS 10101010
#define SPINS_MAX 1000000

static void stop_once(pid_t tid)
{
    static char stack[1024];
    struct user_regs_struct registers;
    struct iovec whole = {&registers, sizeof registers};
    int status, spins = 0;
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
        return;
    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
    while (waitpid(tid, &status, __WALL | WNOHANG) == 0 && ++spins < SPINS_MAX) {
    }
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &whole) == 0) {
        struct iovec local = {stack, sizeof stack};
        struct iovec remote = {(void *)registers.rsp, sizeof stack};
        process_vm_readv(tid, &local, 1, &remote, 1, 0);
    }
    ptrace(PTRACE_DETACH, tid, NULL, NULL);
}

static int is_awake(pid_t pid, pid_t tid)
{
    char path[64], state = 'S';
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'S';
    fclose(file);
    return state == 'R';
}

int main(int argc, char **argv)
{
    char path[32];
    struct timespec next;
    pid_t pid = argc > 1 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
    prctl(PR_SET_TIMERSLACK, 1);
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        return 1;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (;;) {
        const struct dirent *entry;
        rewinddir(tasks);
        while ((entry = readdir(tasks))) {
            pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
            if (tid > 0 && is_awake(pid, tid))
                stop_once(tid);
        }
        next.tv_nsec += PERIOD_NS;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
}
