/* x86-64: DWARF numbers from the System V psABI, AMD64 supplement, figure 3.36. */
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
    .name = "x86_64",
    .register_count = 17,
    .sp = 7,
    .pc = 16,
    .frame_pointer = 6,
    .base_pointer = 3,
    .link = REGISTERS_MAX,
};

uint64_t registers_code_mask(void)
{
    return UINT64_MAX;
}

/* syscall(2): rdi, rsi, rdx, r10, r8, r9. One of them holds the return address in glibc's vfork. */
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
    memcpy(registers->call_arguments, arguments, sizeof registers->call_arguments);
}

/* From the kernel's include/linux/errno.h, never seen by programs: the result of a call that was
 * interrupted while it slept and will be restarted. NOHAND: unless a handler runs. */
#define KERNEL_ERESTARTSYS 512
#define KERNEL_ERESTARTNOINTR 513
#define KERNEL_ERESTARTNOHAND 514
#define KERNEL_ERESTART_RESTARTBLOCK 516

static bool is_interrupted(const struct user_regs_struct *user)
{
    if ((long long)user->orig_rax < 0)
        return false;
    switch (-(long long)user->rax) {
    case EINTR:
    case KERNEL_ERESTARTSYS:
    case KERNEL_ERESTARTNOINTR:
    case KERNEL_ERESTARTNOHAND:
    case KERNEL_ERESTART_RESTARTBLOCK:
        return true;
    default:
        return false;
    }
}

/* Calls that fail with EINTR before they have had any effect, and so can be restarted (signal(7),
 * "Interruption of system calls and library functions by stop signals"). */
static bool can_begin_again(unsigned long long number)
{
    switch (number) {
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_io_getevents:
    case SYS_io_pgetevents:
    case SYS_io_uring_enter:
    case SYS_rt_sigtimedwait:
    case SYS_msgrcv:
    case SYS_msgsnd:
    case SYS_read:
    case SYS_write:
    case SYS_recvfrom:
    case SYS_readv:
    case SYS_writev:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_accept:
    case SYS_accept4:
        return true;
    default:
        return false;
    }
}

/* The kernel's copy_thread makes the new thread return 0 from its creator's call. */
static bool is_new_thread(const struct user_regs_struct *user)
{
    return user->rax == 0 && (user->orig_rax == SYS_clone || user->orig_rax == SYS_clone3);
}

int registers_read_stopped(pid_t tid, struct registers *ret_registers)
{
    struct user_regs_struct user;
    struct iovec whole = {&user, sizeof user};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &whole))
        return -ESRCH;
    if (whole.iov_len != sizeof user)
        return -ENOTSUP; /* a 32-bit program */
    *ret_registers = (struct registers){
        .values = {user.rax, user.rdx, user.rcx, user.rbx, user.rsi, user.rdi, user.rbp, user.rsp,
                   user.r8, user.r9, user.r10, user.r11, user.r12, user.r13, user.r14, user.r15,
                   user.rip},
        .known = (1u << 17) - 1,
        .interrupted_call = is_interrupted(&user) ? (long)user.orig_rax : -1,
        .finished_call = is_interrupted(&user) || is_new_thread(&user) ? -1 : (long)user.orig_rax,
        .may_hide_stop = is_interrupted(&user) && (long long)user.rax == -EINTR &&
                         can_begin_again(user.orig_rax),
        .is_new_thread = is_new_thread(&user),
        .thread_pointer = user.fs_base,
    };
    return 0;
}

#define BIT(number) (1ull << (number))
#define SAMPLE_REGISTERS 17

/* rax to rip and r8 to r15, without flags and segments. */
const uint64_t registers_sample_mask =
    (BIT(PERF_REG_X86_IP + 1) - 1) | (BIT(PERF_REG_X86_R15 + 1) - BIT(PERF_REG_X86_R8));
const size_t registers_sample_count = SAMPLE_REGISTERS;

void registers_from_sample(const uint64_t *values, struct registers *ret_registers)
{
    /* rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, rip, r8, ... (asm/perf_regs.h) */
    static const unsigned numbers[SAMPLE_REGISTERS] = {0, 3, 2,  1,  4,  5,  6,  7, 16,
                                                       8, 9, 10, 11, 12, 13, 14, 15};
    *ret_registers = (struct registers){.known = BIT(SAMPLE_REGISTERS) - 1, .interrupted_call = -1};
    for (unsigned i = 0; i < SAMPLE_REGISTERS; i++)
        ret_registers->values[numbers[i]] = values[i];
    /* SYSCALL puts its return address in rcx. */
    ret_registers->may_be_new_thread = values[0] == 0 && values[2] == values[PERF_REG_X86_IP];
}

void registers_hide_stop(pid_t tid, const struct registers *registers)
{
    struct user_regs_struct user;
    struct iovec whole = {&user, sizeof user};
    if (!registers->may_hide_stop || ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &whole))
        return;
    user.rax = (unsigned long long)-KERNEL_ERESTARTNOHAND;
    ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &whole);
}
