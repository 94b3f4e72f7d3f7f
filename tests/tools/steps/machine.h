/* What an architecture's instructions, system calls and signals do. The build compiles one of
 * x86_64/machine.c and aarch64/machine.c. */
#ifndef FGPROF_STEPS_MACHINE_H
#define FGPROF_STEPS_MACHINE_H

#include "instructions.h"
#include "shadow.h"
#include "observe/registers.h"

#include <sys/user.h>

/* An instruction that stops a traced program, in the lowest bits of a word. */
extern const unsigned long machine_break, machine_break_mask;

uint64_t *machine_pc(struct user_regs_struct *user);

/* The number of the system call that a thread is about to make. */
uint64_t machine_call_number(const struct registers *registers);

/* Reads the instruction at `pc` of the thread. Returns false where it can't be read. */
bool machine_decode(pid_t tid, uint64_t pc, struct instruction *ret_instruction);

/* The name of an instruction's form, or what stands for it. Valid until the next call. */
const char *machine_form_name(unsigned form);

/* Whether a handler was entered from `before`: it has the interrupted stack pointer in its frame
 * (see unwind/ARCHITECTURE/signal_frame.c). */
bool machine_signal_frame(pid_t tid, struct shadow_place before, const struct registers *after,
                          struct shadow_signal *ret_signal);

#endif
