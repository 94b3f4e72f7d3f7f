#include "tracee.h"
#include "machine.h"
#include "proc/memory.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXEC_STATUS (SIGTRAP | PTRACE_EVENT_EXEC << 8)

/* Waits for its next stop. Returns false if there will be none. */
static bool await_stop(const struct tracee *tracee, int *ret_status)
{
    while (waitpid(tracee->pid, ret_status, __WALL) < 0) {
        if (errno != EINTR)
            return false;
    }
    return WIFSTOPPED(*ret_status);
}

int tracee_start(char **command, struct tracee *ret_tracee)
{
    int status;
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (!pid) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 && raise(SIGSTOP) == 0)
            execvp(*command, command);
        _exit(127);
    }
    *ret_tracee = (struct tracee){.pid = pid};
    if (!await_stop(ret_tracee, &status))
        return -EPERM;
    ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC));
    ptrace(PTRACE_CONT, pid, NULL, NULL);
    return await_stop(ret_tracee, &status) && status >> 8 == EXEC_STATUS ? 0 : -ENOEXEC;
}

static uint64_t entry_of(pid_t pid)
{
    char path[64];
    Elf64_auxv_t item;
    uint64_t entry = 0;
    snprintf(path, sizeof path, "/proc/%d/auxv", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && read(fd, &item, sizeof item) == sizeof item) {
        if (item.a_type == AT_ENTRY)
            entry = item.a_un.a_val;
    }
    if (fd >= 0)
        close(fd);
    return entry;
}

enum tracee_event tracee_run_to_entry(struct tracee *tracee)
{
    struct user_regs_struct user;
    struct iovec whole = {&user, sizeof user};
    uint64_t entry = entry_of(tracee->pid);
    int status;
    errno = 0;
    long word = ptrace(PTRACE_PEEKTEXT, tracee->pid, (void *)entry, NULL);
    unsigned long stopping = ((unsigned long)word & ~machine_break_mask) | machine_break;
    if (errno || ptrace(PTRACE_POKETEXT, tracee->pid, (void *)entry, stopping) ||
        ptrace(PTRACE_CONT, tracee->pid, NULL, NULL) || !await_stop(tracee, &status) ||
        WSTOPSIG(status) != SIGTRAP ||
        ptrace(PTRACE_GETREGSET, tracee->pid, (void *)NT_PRSTATUS, &whole))
        return TRACEE_ENDED;
    *machine_pc(&user) = entry;
    ptrace(PTRACE_POKETEXT, tracee->pid, (void *)entry, word);
    ptrace(PTRACE_SETREGSET, tracee->pid, (void *)NT_PRSTATUS, &whole);
    return TRACEE_STEPPED;
}

/* The reason for a stop. Signals that stop a process are withheld: nobody would continue it. */
static enum tracee_event note(struct tracee *tracee, int status)
{
    tracee->signal = 0;
    if (status >> 8 == EXEC_STATUS)
        return TRACEE_ENDED;
    int number = WSTOPSIG(status);
    if (number == SIGTRAP)
        return TRACEE_STEPPED;
    if (number != SIGSTOP && number != SIGTSTP && number != SIGTTIN && number != SIGTTOU)
        tracee->signal = number;
    return TRACEE_SIGNAL;
}

enum tracee_event tracee_run(struct tracee *tracee, unsigned milliseconds)
{
    struct timespec nap = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    int status;
    if (ptrace(PTRACE_CONT, tracee->pid, NULL, tracee->signal))
        return TRACEE_ENDED;
    nanosleep(&nap, NULL);
    syscall(SYS_tgkill, tracee->pid, tracee->pid, SIGSTOP);
    while (await_stop(tracee, &status)) {
        enum tracee_event event = note(tracee, status);
        if (event == TRACEE_ENDED || WSTOPSIG(status) == SIGSTOP)
            return event;
        ptrace(PTRACE_CONT, tracee->pid, NULL, tracee->signal);
    }
    return TRACEE_ENDED;
}

enum tracee_event tracee_step(struct tracee *tracee)
{
    int status;
    if (ptrace(PTRACE_SINGLESTEP, tracee->pid, NULL, tracee->signal) ||
        !await_stop(tracee, &status))
        return TRACEE_ENDED;
    return note(tracee, status);
}

/* registers_read_stopped may take a thread just before a system call for one that sleeps in it. */
int tracee_registers(const struct tracee *tracee, struct registers *ret_registers)
{
    struct user_regs_struct user;
    struct iovec whole = {&user, sizeof user};
    int err = registers_read_stopped(tracee->pid, ret_registers);
    if (!err && ptrace(PTRACE_GETREGSET, tracee->pid, (void *)NT_PRSTATUS, &whole))
        err = -ESRCH;
    if (!err)
        ret_registers->values[architecture.pc] = *machine_pc(&user);
    return err;
}

void tracee_end(struct tracee *tracee)
{
    int status;
    if (tracee->pid <= 0)
        return;
    kill(tracee->pid, SIGKILL);
    while (waitpid(tracee->pid, &status, __WALL) == tracee->pid && WIFSTOPPED(status))
        continue;
}
