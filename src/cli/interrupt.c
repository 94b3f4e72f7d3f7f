#include "cli/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

/* A signal handler gets no argument of ours, so this must be a global. */
static fgprof_recorder *volatile current;

static void stop(int number, siginfo_t *info, void *context)
{
    (void)info, (void)context;
    /* Writing a large profile takes time. A second signal ends the program at once. */
    static volatile sig_atomic_t asked;
    if (asked++) {
        signal(number, SIG_DFL);
        raise(number);
    }
    fgprof_recorder_stop(current);
}

static void forward(int number, siginfo_t *info, void *context)
{
    (void)context;
    int saved_errno = errno;
    pid_t child = fgprof_recorder_child(current);
    /* Ctrl-C at the terminal (SI_KERNEL) goes to the whole foreground process group. A hang-up goes
     * to the session's leader alone. */
    bool has_reached_it = number == SIGINT && info->si_code == SI_KERNEL;
    if (!has_reached_it && child > 0)
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
        /* nohup ignores SIGHUP, and shells make background jobs ignore SIGINT: leave that so. */
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

void interrupt_stops(fgprof_recorder *recorder)
{
    handle(recorder, stop);
    /* Ctrl-Z would also keep a thread stopped that is being sampled at that moment. */
    signal(SIGTSTP, SIG_IGN);
}

void interrupt_forwards(fgprof_recorder *recorder)
{
    handle(recorder, forward);
}
