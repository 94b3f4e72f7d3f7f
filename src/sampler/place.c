#include "sampler/place.h"

enum place place_in_program(const struct sampled_process *process, uint64_t exec_ns, uint64_t at_ns)
{
    if (!process->program)
        return PLACE_NOT_YET;
    if (exec_ns > process->program_current_ns)
        return at_ns < exec_ns ? PLACE_HERE : PLACE_NOT_YET;
    uint64_t since_ns = process->programs_before ? process->program_opened_ns : 0;
    return at_ns >= (exec_ns ? exec_ns : since_ns) ? PLACE_HERE : PLACE_NOWHERE;
}
