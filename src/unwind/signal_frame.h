/* What the kernel leaves on the stack for a signal handler: the registers of the code that the
 * signal interrupted. The build compiles one of x86_64/signal_frame.c and aarch64/signal_frame.c.
 */
#ifndef FGPROF_UNWIND_SIGNAL_FRAME_H
#define FGPROF_UNWIND_SIGNAL_FRAME_H

#include "observe/registers.h"

#define SIGNAL_RETURN_BYTES 9 /* how much of the code is compared */

/* Whether the code that a handler returns to ends the handling: the call of rt_sigreturn. */
bool signal_return_is_at(const uint8_t code[SIGNAL_RETURN_BYTES]);

/* How far into that code the system call itself is. */
extern const unsigned signal_return_call_offset;

/* By DWARF number: where the register is, in bytes from the stack pointer that the handler returns
 * with. */
extern const uint16_t signal_frame_offsets[REGISTERS_MAX];

#endif
