/* Clocks, in nanoseconds. */
#ifndef FGPROF_BASE_CLOCK_H
#define FGPROF_BASE_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_S 1000000000u

/* CLOCK_MONOTONIC: the clock that sampling uses. */
uint64_t monotonic_ns(void);

/* CLOCK_BOOTTIME: since boot, the clock by which the kernel gives the start of processes. */
uint64_t boot_ns(void);

/* CLOCK_REALTIME: since 1970. */
uint64_t wall_ns(void);

/* The calling thread's time on a CPU: on a busy machine, a small part of the time that passed. */
uint64_t thread_cpu_ns(void);

/* A time in nanoseconds, as system calls take it. */
struct timespec timespec_of_ns(uint64_t ns);

/* Makes a condition whose timed waits end by CLOCK_MONOTONIC. */
void condition_init(pthread_cond_t *condition);

#endif
