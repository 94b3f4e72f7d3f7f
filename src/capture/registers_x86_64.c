/* x86-64: DWARF numbers from the System V psABI, AMD64 supplement, figure 3.36. */
#include "capture/registers.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

const struct architecture architecture = {
    .name = "x86_64", .register_count = 17, .sp = 7, .pc = 16, .frame_pointer = 6};

/* syscall(2): rdi, rsi, rdx, r10, r8, r9. vfork of glibc, for one, has its return address there. */
void registers_set_blocked(struct registers *registers, const uint64_t arguments[6], uint64_t sp,
                           uint64_t pc)
{
    static const unsigned numbers[6] = {5, 4, 1, 10, 8, 9};
    *registers = (struct registers){.known = 1u << 7 | 1u << 16};
    registers->values[7] = sp;
    registers->values[16] = pc;
    for (unsigned i = 0; i < 6; i++) {
        registers->values[numbers[i]] = arguments[i];
        registers->known |= 1u << numbers[i];
    }
}

int registers_read_stopped(pid_t tid, struct registers *ret_registers)
{
    struct user_regs_struct user;
    struct iovec whole = {&user, sizeof user};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &whole) || whole.iov_len != sizeof user)
        return -ESRCH;
    *ret_registers = (struct registers){
        .values = {user.rax, user.rdx, user.rcx, user.rbx, user.rsi, user.rdi, user.rbp, user.rsp,
                   user.r8, user.r9, user.r10, user.r11, user.r12, user.r13, user.r14, user.r15,
                   user.rip},
        .known = (1u << 17) - 1,
    };
    return 0;
}
