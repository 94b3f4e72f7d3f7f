/* An architecture's instructions, system calls and signal frames. The build compiles one of
 * x86_64/machine.c and aarch64/machine.c. */
#ifndef FGPROF_STEPS_MACHINE_H
#define FGPROF_STEPS_MACHINE_H

#include "instructions.h"
#include "observe/registers.h"

#include <sys/user.h>

/* An instruction that stops a traced program, in the lowest bits of a word. */
extern const unsigned long machine_break, machine_break_mask;

uint64_t *machine_pc(struct user_regs_struct *user);

/* The number of the system call that a thread is about to make. */
uint64_t machine_call_number(const struct registers *registers);

/* Reads the instruction at `pc` of the thread. Returns false if it can't be read. */
bool machine_decode(pid_t tid, uint64_t pc, struct instruction *ret_instruction);

/* The mnemonic of an instruction's form, or its encoding. Valid until the next call. */
const char *machine_form_name(unsigned form);

/* The offset of the ucontext in a signal frame, from the stack pointer after the handler's return
 * (struct rt_sigframe in the kernel). */
extern const unsigned machine_ucontext_offset;

#endif
