/* The time, for the command line. */
#ifndef FGPROF_CLI_CLOCK_H
#define FGPROF_CLI_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S 1000000000u

/* In ns, by a clock of clock_gettime(2). */
static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static inline uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

#endif
