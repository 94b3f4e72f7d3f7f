#include "interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

/* A handler gets no argument of ours: the one place where there is no way around a global. */
static fgprof_recorder *volatile current;

static void stop(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    fgprof_recorder_stop(current);
}

static void forward(int number, siginfo_t *info, void *context)
{
    (void)context;
    int saved_errno = errno;
    pid_t child = fgprof_recorder_child(current);
    /* SI_KERNEL: the terminal's, which went to the whole foreground process group. */
    if (info->si_code != SI_KERNEL && child > 0)
        kill(child, number);
    errno = saved_errno;
}

static void handle(fgprof_recorder *recorder, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&action.sa_mask);
    current = recorder;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction before;
        /* nohup has SIGHUP ignored, a shell's background job SIGINT: so it stays. */
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

void interrupt_stops(fgprof_recorder *recorder)
{
    handle(recorder, stop);
}

void interrupt_forwards(fgprof_recorder *recorder)
{
    handle(recorder, forward);
}
