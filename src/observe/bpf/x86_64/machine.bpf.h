/* x86-64: the registers at a thread's entry to the kernel, and how a slot is written. */
#ifndef FGPROF_OBSERVE_BPF_X86_64_MACHINE_BPF_H
#define FGPROF_OBSERVE_BPF_X86_64_MACHINE_BPF_H

#include "observe/bpf/kernel_types.h"
#include "observe/bpf/switch_format.h"

#include <bpf/bpf_helpers.h>

#define WORD_FP 4
#define WORD_FIRST_ARGUMENT 14
#define WORD_CALL 15
#define WORD_SP 19
#define FUTEX_CALL 202

struct pt_regs {
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
        flags, sp;
} RELOCATED;

/* The order is that of asm/ptrace.h. Each register is read separately, because that needs no call:
 * if returns are slow (Spectre, SRSO), a call costs more than all of this. */
static __always_inline void read_words(__u64 words[SWITCH_WORDS], const struct pt_regs *registers)
{
    words[0] = registers->r15;
    words[1] = registers->r14;
    words[2] = registers->r13;
    words[3] = registers->r12;
    words[WORD_FP] = registers->bp;
    words[5] = registers->bx;
    words[6] = registers->r11;
    words[7] = registers->r10;
    words[8] = registers->r9;
    words[9] = registers->r8;
    words[10] = registers->ax;
    words[11] = registers->cx;
    words[12] = registers->dx;
    words[13] = registers->si;
    words[14] = registers->di;
    words[15] = registers->orig_ax;
    words[16] = registers->ip;
    words[17] = registers->cs;
    words[18] = registers->flags;
    words[WORD_SP] = registers->sp;
}

/* Other CPUs see stores in program order. */
static __always_inline void step_sequence(__u32 *sequence, __u32 step)
{
    barrier();
    *(volatile __u32 *)sequence += step;
    barrier();
}

#endif
