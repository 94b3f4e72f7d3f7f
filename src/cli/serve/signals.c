#include "cli/serve/signals.h"

#include <signal.h>

/* Signals that nohup(1) or a shell has made ignored stay so. */
static void find_signals(sigset_t *signals)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    sigemptyset(signals);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        if (sigaction(ending[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(signals, ending[i]);
    }
}

void signals_block(void)
{
    sigset_t signals;
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
    /* Its lock must not stay taken if we are cancelled. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    session_stop(session);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    sigwait(&signals, &number);
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
    pthread_cancel(thread);
    pthread_join(thread, NULL);
}
