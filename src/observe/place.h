/* Which program of a process something belongs to that the kernel reports late. */
#ifndef FGPROF_OBSERVE_PLACE_H
#define FGPROF_OBSERVE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

enum place {
    PLACE_HERE,    /* the program that is known as the process's */
    PLACE_NOT_YET, /* one that is not known yet */
    PLACE_NOWHERE, /* one that has ended */
};

/* When the process runs the program that is known; CLOCK_MONOTONIC. */
struct program_span {
    uint64_t opened_ns;
    /* It still ran after that: an execve(2) reported before was its own, though it may have been
     * reported after the program was opened. */
    uint64_t current_ns;
    bool has_before; /* it ran another one before, while it was sampled */
};

/* Where a stack of `at_ns` belongs: a process may have executed another program before, or after.
 * `exec_ns`: when it was last reported to execute one; 0: never. */
static inline enum place place_in_span(const struct program_span *span, uint64_t exec_ns,
                                       uint64_t at_ns)
{
    if (exec_ns > span->current_ns)
        return at_ns < exec_ns ? PLACE_HERE : PLACE_NOT_YET;
    uint64_t since_ns = span->has_before ? span->opened_ns : 0;
    return at_ns >= (exec_ns ? exec_ns : since_ns) ? PLACE_HERE : PLACE_NOWHERE;
}

#endif
