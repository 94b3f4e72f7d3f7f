/* Which program of a process something belongs to that the kernel reports late. */
#ifndef FGPROF_SAMPLER_PLACE_H
#define FGPROF_SAMPLER_PLACE_H

#include "observe/place.h"
#include "sampler/process.h"

/* See place_in_span. */
static inline enum place place_in_program(const struct sampled_process *process, uint64_t exec_ns,
                                          uint64_t at_ns)
{
    return process->program ? place_in_span(&process->span, exec_ns, at_ns) : PLACE_NOT_YET;
}

#endif
