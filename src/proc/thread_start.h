/* Where a thread begins: the function that was passed to pthread_create(3). */
#ifndef FGPROF_PROC_THREAD_START_H
#define FGPROF_PROC_THREAD_START_H

#include "proc/stack_areas.h"

#include <stdint.h>
#include <sys/types.h>

/* The address of the thread's list of robust mutexes, which identifies the thread while its C
 * library has one registered: glibc does so soon after the thread's birth (get_robust_list(2)). 0:
 * not known. */
uint64_t thread_robust_list(pid_t tid);

/* Finds the function without stopping the thread. `areas` is what is known of its process's
 * mappings. Returns 0; -ENOTSUP if the thread's C library does not show it, as musl's does not, if
 * no other thread created this one, or if it is not ready yet; or another negative errno. */
int thread_start_find(pid_t tid, const struct stack_areas *areas, uint64_t *ret_start);

#endif
