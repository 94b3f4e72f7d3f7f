/* Not written yet: here the return address is in a register until the function calls another. */
#include "unwind/code/code_frame.h"

struct code_frame code_frame_at(const uint8_t *code, size_t code_bytes, size_t at)
{
    (void)code, (void)code_bytes, (void)at;
    return (struct code_frame){.kind = CODE_FRAME_UNKNOWN};
}

/* Not written yet: stubs here leave the return address in its register. */
struct code_frame code_frame_in_stub(const uint8_t code[CODE_STUB_BYTES])
{
    (void)code;
    return (struct code_frame){.kind = CODE_FRAME_UNKNOWN};
}
