/* AArch64: DWARF numbers from "DWARF for the Arm 64-bit Architecture", 4.1: x0-x30 are 0-30, sp is
 * 31. 32 is pc, as in libunwind. */
#include "observe/registers.h"

#include <asm/perf_regs.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
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
};

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

int registers_read_stopped(pid_t tid, struct registers *ret_registers)
{
    struct user_regs_struct user;
    struct iovec whole = {&user, sizeof user};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &whole))
        return -ESRCH;
    if (whole.iov_len != sizeof user)
        return -ENOTSUP; /* a 32-bit program */
    struct registers registers = {
        .known = (1ull << 33) - 1, .interrupted_call = -1, .finished_call = -1};
    memcpy(registers.values, user.regs, 31 * sizeof *registers.values);
    registers.values[31] = user.sp;
    registers.values[32] = user.pc;
    /* The number of a system call stays in x8; a new thread gets the result 0 (copy_thread). */
    registers.is_new_thread =
        user.regs[0] == 0 && (user.regs[8] == SYS_clone || user.regs[8] == SYS_clone3);
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

/* Not done here: restarting calls could not be tried on this architecture. */
void registers_hide_stop(pid_t tid, const struct registers *registers)
{
    (void)tid, (void)registers;
}

bool registers_call_survives_stop(long syscall_number)
{
    (void)syscall_number;
    return false;
}
