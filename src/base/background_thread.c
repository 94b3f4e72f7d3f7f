#include "base/background_thread.h"

#include <signal.h>

int background_thread_start(void *(*run)(void *), void *argument, pthread_t *ret_thread)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(ret_thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -err;
}
