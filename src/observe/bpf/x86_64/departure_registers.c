/* x86-64: the words are struct pt_regs up to sp (asm/ptrace.h). DWARF numbers are as in
 * observe/x86_64/registers.c. */
#include "observe/bpf/departure.h"

#include <string.h>
#include <sys/syscall.h>

enum {
    R15,
    R14,
    R13,
    R12,
    RBP,
    RBX,
    R11,
    R10,
    R9,
    R8,
    RAX,
    RCX,
    RDX,
    RSI,
    RDI,
    ORIG_RAX,
    RIP,
    CS,
    FLAGS,
    RSP
};
_Static_assert(RSP == SWITCH_WORDS - 1, "sp is the last word");

#define USER_CS 0x33 /* of 64-bit code: __USER_CS in the kernel's asm/segment.h */
#define RESULT 0     /* rax's DWARF number */

/* In a call, rax holds -ENOSYS until the result is known; it is 0 in a new thread, which returns
 * from its creator's call. */
void departure_registers(const __u64 words[SWITCH_WORDS], struct registers *ret_registers,
                         long *ret_syscall_number)
{
    static const unsigned char places[17] = {RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8,
                                             R9,  R10, R11, R12, R13, R14, R15, RIP};
    static const unsigned char arguments[6] = {RDI, RSI, RDX, R10, R8, R9};
    long number = (long)words[ORIG_RAX];
    *ret_syscall_number = number < 0 ? -1 : number;
    *ret_registers = (struct registers){.interrupted_call = -1};
    if ((words[CS] & 0xffff) != USER_CS)
        return;
    for (unsigned i = 0; i < sizeof places; i++)
        registers_set(ret_registers, i, words[places[i]]);
    if (number < 0)
        return;
    for (unsigned i = 0; i < 6; i++)
        ret_registers->call_arguments[i] = words[arguments[i]];
    ret_registers->is_new_thread = words[RAX] == 0 && (number == SYS_clone || number == SYS_clone3);
    if (!ret_registers->is_new_thread)
        ret_registers->known &= ~(1ull << RESULT);
}
