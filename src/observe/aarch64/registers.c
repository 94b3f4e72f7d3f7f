/* AArch64: DWARF numbers from "DWARF for the Arm 64-bit Architecture", 4.1: x0-x30 are 0-30, sp is
 * 31. 32 is pc, as in libunwind. */
#include "observe/registers.h"

#include <asm/perf_regs.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

const struct architecture architecture = {
    .name = "aarch64",
    .register_count = 33,
    .sp = 31,
    .pc = 32,
    .frame_pointer = 29,
    .base_pointer = 19,
    .link = 30,
};

/* Pointer authentication puts signatures in the bits above the address space, which has the same
 * size in all processes (Documentation/arm64/pointer-authentication.rst; TASK_SIZE_64 in
 * asm/processor.h). Stacks begin in its uppermost part. A stopped thread's NT_ARM_PAC_MASK gives
 * the same mask. */
uint64_t registers_code_mask(void)
{
    uint64_t on_stack = getauxval(AT_RANDOM);
    return UINT64_MAX >> __builtin_clzll(on_stack | 1);
}

/* syscall(2): x0 to x5. */
void registers_set_blocked(struct registers *registers, const uint64_t arguments[6], uint64_t sp,
                           uint64_t pc)
{
    *registers = (struct registers){.known = 0x3full | 1ull << 31 | 1ull << 32};
    memcpy(registers->values, arguments, 6 * sizeof *arguments);
    registers->values[31] = sp;
    registers->values[32] = pc;
    memcpy(registers->call_arguments, arguments, sizeof registers->call_arguments);
}

#define SVC 0xd4000001u /* svc #0 */

/* Finds the system call of a stopped thread from the code around its program counter; x8 has the
 * number of the call. The program counter of a call that was interrupted and will be restarted is
 * before its instruction (do_signal in arch/arm64/kernel/signal.c); it is moved to where it is in a
 * sleeping thread. */
static void find_call(pid_t tid, struct registers *registers)
{
    uint64_t *pc = &registers->values[32];
    long number = (long)registers->values[8], result = (long)registers->values[0];
    errno = 0;
    uint64_t words = (uint64_t)ptrace(PTRACE_PEEKTEXT, tid, (void *)(*pc - 4), NULL);
    if (errno)
        return;
    if ((uint32_t)(words >> 32) == SVC) {
        registers->interrupted_call = number;
        *pc += 4;
    } else if ((uint32_t)words == SVC) {
        registers->is_new_thread = result == 0 && (number == SYS_clone || number == SYS_clone3);
        if (result == -EINTR)
            registers->interrupted_call = number;
        else if (!registers->is_new_thread)
            registers->finished_call = number;
    }
}

int registers_read_stopped(pid_t tid, struct registers *ret_registers)
{
    struct user_regs_struct user;
    struct iovec whole = {&user, sizeof user};
    uint64_t pointer;
    struct iovec tls = {&pointer, sizeof pointer};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &whole))
        return -ESRCH;
    if (whole.iov_len != sizeof user)
        return -ENOTSUP; /* a 32-bit program */
    struct registers registers = {
        .known = (1ull << 33) - 1, .interrupted_call = -1, .finished_call = -1};
    memcpy(registers.values, user.regs, 31 * sizeof *registers.values);
    registers.values[31] = user.sp;
    registers.values[32] = user.pc;
    find_call(tid, &registers);
    if (!ptrace(PTRACE_GETREGSET, tid, (void *)NT_ARM_TLS, &tls))
        registers.thread_pointer = pointer;
    *ret_registers = registers;
    return 0;
}

/* x0 to x30, sp and pc: the order is DWARF's (asm/perf_regs.h). */
#define SAMPLE_REGISTERS 33
const uint64_t registers_sample_mask = (1ull << SAMPLE_REGISTERS) - 1;
const size_t registers_sample_count = SAMPLE_REGISTERS;
_Static_assert(PERF_REG_ARM64_PC == SAMPLE_REGISTERS - 1, "pc is the last");

void registers_from_sample(const uint64_t *values, struct registers *ret_registers)
{
    *ret_registers = (struct registers){.known = registers_sample_mask, .interrupted_call = -1};
    memcpy(ret_registers->values, values, SAMPLE_REGISTERS * sizeof *values);
    ret_registers->may_be_new_thread = values[0] == 0;
}

/* The original x0 of a call that failed with EINTR is not available, so the call can't be restarted
 * (docs/limits.md). */
void registers_hide_stop(pid_t tid, const struct registers *registers)
{
    (void)tid, (void)registers;
}
