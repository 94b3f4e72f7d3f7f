/* What is read of code on x86_64 and not yet here. The return address is in a register until a
 * function calls another, and the compiler chooses the frame pointer's place in the frame. */
#include "unwind/code/code_end.h"
#include "unwind/code/code_frame.h"
#include "unwind/code/prologue.h"

uint64_t code_end_of_function(struct module *module, uint64_t start, uint64_t limit)
{
    (void)module, (void)start;
    return limit;
}

struct code_frame code_frame_at(const uint8_t *code, size_t code_bytes, size_t at)
{
    (void)code, (void)code_bytes, (void)at;
    return (struct code_frame){.kind = CODE_FRAME_UNKNOWN};
}

struct code_frame code_frame_in_stub(const uint8_t code[CODE_STUB_BYTES])
{
    (void)code;
    return (struct code_frame){.kind = CODE_FRAME_UNKNOWN};
}

size_t prologue_frame_bytes(const uint8_t *code, size_t code_bytes,
                            uint64_t ret_candidates[PROLOGUE_CANDIDATES_MAX])
{
    (void)code, (void)code_bytes, (void)ret_candidates;
    return 0;
}
