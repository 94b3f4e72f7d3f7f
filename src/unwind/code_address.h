/* Which address shows what code a frame is in. */
#ifndef FGPROF_UNWIND_CODE_ADDRESS_H
#define FGPROF_UNWIND_CODE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

/* An address in the call that returns to `return_address`. The call may be the last instruction of
 * its function, or of all that its file has mapped; the return address is then in other code, or in
 * none. */
static inline uint64_t address_of_call(uint64_t return_address)
{
    return return_address - 1;
}

/* The address to look a frame up by. `is_exact`: `pc` is where the frame is, as in the leaf and in
 * code that a signal interrupted, and not where it will be returned to. */
static inline uint64_t lookup_address(uint64_t pc, bool is_exact)
{
    return is_exact ? pc : address_of_call(pc);
}

#endif
