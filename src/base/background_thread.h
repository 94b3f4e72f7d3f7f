/* Our own threads in a program that has other threads. */
#ifndef FGPROF_BASE_BACKGROUND_THREAD_H
#define FGPROF_BASE_BACKGROUND_THREAD_H

#include <pthread.h>

/* Starts a thread with all signals blocked, so that only the caller's threads receive them. Returns
 * 0 or a negative errno. */
int background_thread_start(void *(*run)(void *), void *argument, pthread_t *ret_thread);

#endif
