/* AArch64: the registers at a thread's entry to the kernel, and how a slot is written. */
#ifndef FGPROF_OBSERVE_BPF_AARCH64_MACHINE_BPF_H
#define FGPROF_OBSERVE_BPF_AARCH64_MACHINE_BPF_H

#include "observe/bpf/kernel_types.h"
#include "observe/bpf/switch_format.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define WORD_FP 29
#define WORD_SP 31
#define WORD_FIRST_ARGUMENT 34 /* x0 as it was at the call */
#define WORD_CALL 35
#define FUTEX_CALL 98
#define USER_WORDS 34 /* struct user_pt_regs (asm/ptrace.h), the beginning of struct pt_regs */

struct pt_regs {
    __u64 orig_x0;
    __s32 syscallno;
} RELOCATED;

static __always_inline void read_words(__u64 words[SWITCH_WORDS], const struct pt_regs *registers)
{
    bpf_probe_read_kernel(words, USER_WORDS * sizeof *words, registers);
    words[USER_WORDS] = BPF_CORE_READ(registers, orig_x0);
    words[USER_WORDS + 1] = (__u64)(__s64)BPF_CORE_READ(registers, syscallno);
}

/* An atomic operation that returns a value orders all stores. */
static __always_inline void step_sequence(__u32 *sequence, __u32 step)
{
    __u32 before = __sync_fetch_and_add(sequence, step);
    asm volatile("" : : "r"(before)); /* else the compiler drops the value, and the order with it */
}

#endif
