/* Not written yet: stubs here leave the return address in its register. */
#include "unwind/code/code_frame.h"

struct code_frame code_frame_in_stub(const uint8_t code[CODE_STUB_BYTES])
{
    (void)code;
    return (struct code_frame){.kind = CODE_FRAME_UNKNOWN};
}
