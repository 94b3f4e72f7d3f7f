/* AArch64: the words are struct user_pt_regs (asm/ptrace.h), that is, x0 to x30, sp, pc and pstate,
 * followed by the first argument and the number of the call. DWARF numbers are as in
 * observe/aarch64/registers.c. */
#include "observe/bpf/departure.h"

#include <string.h>
#include <sys/syscall.h>

enum { SP = 31, PC, STATE, FIRST_ARGUMENT, CALL };
_Static_assert(CALL == SWITCH_WORDS - 1, "the number of the call is the last");

#define RUNS_32_BIT_CODE 0x10 /* PSR_MODE32_BIT in asm/ptrace.h */

/* x0 holds the first argument until the result replaces it; it is 0 in a new thread, which returns
 * from its creator's call. */
void departure_registers(const __u64 words[SWITCH_WORDS], struct registers *ret_registers,
                         long *ret_syscall_number)
{
    long number = (long)words[CALL];
    *ret_syscall_number = number < 0 ? -1 : number;
    *ret_registers = (struct registers){.interrupted_call = -1};
    if (words[STATE] & RUNS_32_BIT_CODE)
        return;
    for (unsigned i = 0; i <= PC; i++)
        registers_set(ret_registers, i, words[i]);
    if (number < 0)
        return;
    memcpy(ret_registers->call_arguments, words, sizeof ret_registers->call_arguments);
    ret_registers->call_arguments[0] = words[FIRST_ARGUMENT];
    ret_registers->is_new_thread = words[0] == 0 && (number == SYS_clone || number == SYS_clone3);
}
