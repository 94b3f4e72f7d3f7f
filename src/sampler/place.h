/* To which program of a process something belongs that the kernel tells late. */
#ifndef FGPROF_SAMPLER_PLACE_H
#define FGPROF_SAMPLER_PLACE_H

#include "sampler/process.h"

enum place {
    PLACE_HERE,    /* the program that is known as the process's */
    PLACE_NOT_YET, /* one that is not known yet */
    PLACE_NOWHERE, /* one that has ended */
};

/* Where a stack of `at_ns` belongs: a process may have executed another program before, or after.
 * `exec_ns`: when it last executed one, as far as that was told; 0: it has not. */
enum place place_in_program(const struct sampled_process *process, uint64_t exec_ns,
                            uint64_t at_ns);

#endif
