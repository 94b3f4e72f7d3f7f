/* Not read yet: the compiler chooses the frame pointer's place in the frame. */
#include "unwind/code/prologue.h"

size_t prologue_frame_bytes(const uint8_t *code, size_t code_bytes,
                            uint64_t ret_candidates[PROLOGUE_CANDIDATES_MAX])
{
    (void)code, (void)code_bytes, (void)ret_candidates;
    return 0;
}
