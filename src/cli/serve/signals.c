#include "cli/serve/signals.h"

#include <signal.h>

/* Tells the waiting thread that the session is over. pthread_cancel would load a library, and abort
 * if that fails. */
#define SIGNAL_OVER SIGRTMIN

/* Signals that nohup(1) or a shell has made ignored stay so. */
static void find_signals(sigset_t *signals)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    sigemptyset(signals);
    sigaddset(signals, SIGNAL_OVER);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        if (sigaction(ending[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(signals, ending[i]);
    }
}

void signals_block(void)
{
    sigset_t signals;
    signal(SIGNAL_OVER, SIG_DFL); /* it may have been inherited as ignored */
    find_signals(&signals);
    sigaddset(&signals, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGTSTP, SIG_IGN); /* see interrupt_stops */
}

static void *wait_for_signals(void *context)
{
    struct session *session = context;
    sigset_t signals;
    int number;
    find_signals(&signals);
    sigwait(&signals, &number);
    if (number == SIGNAL_OVER)
        return NULL;
    session_stop(session);
    sigwait(&signals, &number);
    if (number == SIGNAL_OVER)
        return NULL;
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    raise(number);
    return NULL;
}

int signals_begin(struct session *session, pthread_t *ret_thread)
{
    return -pthread_create(ret_thread, NULL, wait_for_signals, session);
}

void signals_end(pthread_t thread)
{
    pthread_kill(thread, SIGNAL_OVER);
    pthread_join(thread, NULL);
}
