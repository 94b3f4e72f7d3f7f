/* The registers and the live stack of the calling thread, as a record of the ring has them: enough
 * to unwind the stack later, in another process. Nothing here allocates or waits, so signal
 * handlers may use it, too. It may change errno.
 *
 *     struct capture capture;
 *     capture_begin(&capture);
 *     record = ... of sizeof *record + capture_bytes_max(&capture);
 *     record->stack_bytes = capture_copy(&capture, record->registers, &is_cut);
 *
 * The function with these lines is the first frame. It must not return in between, and it must be
 * part of the agent. */
#ifndef FGPROF_AGENT_CAPTURE_H
#define FGPROF_AGENT_CAPTURE_H

#include "agent/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct capture {
    uint64_t registers[AGENT_REGISTER_COUNT];
    uint64_t stack; /* where the copy begins */
    uint32_t stack_bytes;
    bool is_cut;    /* the stack continues after them, or that is not known */
    bool is_joined; /* no gap was found between them and the end of the thread's own stack */
};

/* Takes AGENT_REGISTERS as they are in the function that this is in. */
static inline __attribute__((always_inline)) void
capture_registers(uint64_t registers[AGENT_REGISTER_COUNT])
{
#if defined(__x86_64__)
    __asm__ volatile("0: leaq 0b(%%rip), %%rax\n\t"
                     "movq %%rbx, 0(%0)\n\t"
                     "movq %%rbp, 8(%0)\n\t"
                     "movq %%rsp, 16(%0)\n\t"
                     "movq %%r12, 24(%0)\n\t"
                     "movq %%r13, 32(%0)\n\t"
                     "movq %%r14, 40(%0)\n\t"
                     "movq %%r15, 48(%0)\n\t"
                     "movq %%rax, 56(%0)"
                     :
                     : "r"(registers)
                     : "rax", "memory");
#elif defined(__aarch64__)
    /* x30 is not among the registers, so it has to be in the stack by now. */
    __asm__ volatile("0: adr x9, 0b\n\t"
                     "mov x10, sp\n\t"
                     "stp x19, x20, [%0]\n\t"
                     "stp x21, x22, [%0, 16]\n\t"
                     "stp x23, x24, [%0, 32]\n\t"
                     "stp x25, x26, [%0, 48]\n\t"
                     "stp x27, x28, [%0, 64]\n\t"
                     "stp x29, x10, [%0, 80]\n\t"
                     "str x9, [%0, 96]"
                     :
                     : "r"(registers)
                     : "x9", "x10", "x30", "memory");
#endif
}

/* Reads a word that another thread may have unmapped. Returns false if it has. */
bool capture_read_word(uint64_t address, uint64_t *ret_word);

/* Finds how much of the stack to copy, from the captured registers. */
void capture_measure(struct capture *capture);

static inline __attribute__((always_inline)) void capture_begin(struct capture *capture)
{
    capture_registers(capture->registers);
    capture_measure(capture);
}

/* How much capture_copy writes at most. */
static inline size_t capture_bytes_max(const struct capture *capture)
{
    return sizeof capture->registers + capture->stack_bytes;
}

/* Writes the registers and then the stack. Returns how many bytes of the stack it wrote, and sets
 * *ret_is_cut to whether the stack is known to continue. */
uint32_t capture_copy(const struct capture *capture, void *buffer, bool *ret_is_cut);

#endif
