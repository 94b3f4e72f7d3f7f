/* x86-64: the registers with which a thread entered the kernel, and how a slot is written. */
#ifndef FGPROF_OBSERVE_BPF_X86_64_MACHINE_BPF_H
#define FGPROF_OBSERVE_BPF_X86_64_MACHINE_BPF_H

#include "observe/bpf/kernel_types.h"
#include "observe/bpf/switch_format.h"

#include <bpf/bpf_helpers.h>

#define WORD_SP 19

/* struct pt_regs is of words, in the order of asm/ptrace.h. */
static __always_inline void read_words(__u64 words[SWITCH_WORDS], const void *pt_regs)
{
    bpf_probe_read_kernel(words, SWITCH_WORDS * sizeof *words, pt_regs);
}

/* Stores are seen in their order by other CPUs. */
static __always_inline void step_sequence(__u32 *sequence, __u32 step)
{
    barrier();
    *(volatile __u32 *)sequence += step;
    barrier();
}

#endif
