/* The registers that unwinding needs, and their names on each architecture. The build compiles one
 * of x86_64/registers.c and aarch64/registers.c. */
#ifndef FGPROF_OBSERVE_REGISTERS_H
#define FGPROF_OBSERVE_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Indexed by DWARF number, which equals libunwind's on both architectures; pc is last. */
#define REGISTERS_MAX 33

struct registers {
    uint64_t values[REGISTERS_MAX];
    uint64_t known; /* bit n: register n was captured */
    /* For a stopped thread: */
    long interrupted_call;   /* the system call in which it slept, or was about to sleep; -1:
                                none */
    long finished_call;      /* the system call at whose end it stopped; -1: none, or not known */
    bool may_hide_stop;      /* see registers_hide_stop */
    uint64_t thread_pointer; /* 0: not known */
    bool is_new_thread; /* it has not run since clone(2) created it: it is where its creator was */
    /* For a sampled thread, whose system call is not known: it is where a call returns 0, as
     * clone(2) does in a new thread. */
    bool may_be_new_thread;
    /* For a thread that is blocked in a call, the arguments of the call: */
    uint64_t call_arguments[6];
};

struct architecture {
    const char *name;
    unsigned register_count;
    /* DWARF numbers. base_pointer is a callee-saved register; code that does not use the frame
     * pointer may keep its frame's address in it. */
    unsigned sp, pc, frame_pointer, base_pointer;
    unsigned link; /* where a call puts the return address; REGISTERS_MAX: on the stack */
};

extern const struct architecture architecture;

/* The bits of a return address that hold the address; the others may hold a signature. */
uint64_t registers_code_mask(void);

/* Sets the registers of a thread that is blocked in a system call: stack pointer, program counter,
 * and the registers that hold the call's six arguments. */
void registers_set_blocked(struct registers *registers, const uint64_t arguments[6], uint64_t sp,
                           uint64_t pc);

/* Reads the registers of a thread that is stopped by ptrace. Returns 0, -ESRCH, or -ENOTSUP if it
 * runs 32-bit code. */
int registers_read_stopped(pid_t tid, struct registers *ret_registers);

/* The registers that a sample by the kernel holds (perf_event_open(2), sample_regs_user), and their
 * number, at most REGISTERS_MAX. */
extern const uint64_t registers_sample_mask;
extern const size_t registers_sample_count;

/* Reads the registers of a sample, which are in the order of the mask's bits. */
void registers_from_sample(const uint64_t *values, struct registers *ret_registers);

/* Undoes the effect of our stop on a system call. If a running thread was asked to stop and went to
 * sleep in a call before it did, the call is interrupted, and some calls then fail with EINTR
 * although no signal came. This makes the kernel restart such a call, as it would after a signal
 * without a handler; a signal with a handler still interrupts it. `registers` are those read at the
 * stop. */
void registers_hide_stop(pid_t tid, const struct registers *registers);

static inline uint64_t registers_pc(const struct registers *registers)
{
    return registers->values[architecture.pc];
}

static inline uint64_t registers_sp(const struct registers *registers)
{
    return registers->values[architecture.sp];
}

static inline void registers_set(struct registers *registers, unsigned number, uint64_t value)
{
    registers->values[number] = value;
    registers->known |= 1ull << number;
}

static inline bool registers_has(const struct registers *registers, unsigned number)
{
    return number < REGISTERS_MAX && (registers->known >> number & 1);
}

#endif
