/* struct rt_sigframe of the kernel's arch/x86/include/asm/sigframe.h: after the return address, a
 * ucontext, whose registers begin at byte 40 with r8 (struct sigcontext_64 of
 * arch/x86/include/uapi/asm/sigcontext.h). */
#include "unwind/signal_frame.h"

#include <string.h>

/* mov $15,%rax; syscall */
bool signal_return_is_at(const uint8_t code[SIGNAL_RETURN_BYTES])
{
    static const uint8_t call[SIGNAL_RETURN_BYTES] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    return memcmp(code, call, sizeof call) == 0;
}

const unsigned signal_return_call_offset = 7;

const uint16_t signal_frame_offsets[REGISTERS_MAX] = {
    144, 136, 152, 128, 112, 104, 120, 160, /* rax rdx rcx rbx rsi rdi rbp rsp */
    40,  48,  56,  64,  72,  80,  88,  96,  /* r8 to r15 */
    168,                                    /* rip */
};
