/* struct rt_sigframe of the kernel's arch/arm64/kernel/signal.c: a siginfo of 128 bytes and a
 * ucontext, in which a sigcontext (arch/arm64/include/uapi/asm/sigcontext.h) begins at byte 176:
 * the fault's address, x0 to x30, sp, pc. */
#include "unwind/signal_frame.h"

#include <string.h>

/* mov x8, #139; svc #0 */
bool signal_return_is_at(const uint8_t code[SIGNAL_RETURN_BYTES])
{
    static const uint32_t call[2] = {0xd2801168u, 0xd4000001u};
    return memcmp(code, call, sizeof call) == 0;
}

const unsigned signal_return_call_offset = 4;

const uint16_t signal_frame_offsets[REGISTERS_MAX] = {
    312, 320, 328, 336, 344, 352, 360, 368, 376, 384, 392, 400, 408, 416, 424, 432, 440,
    448, 456, 464, 472, 480, 488, 496, 504, 512, 520, 528, 536, 544, 552, 560, 568,
};
