/* Fields of instructions, and targets of branches (Arm Architecture Reference Manual for A-profile,
 * C4.1, "A64 instruction set encoding"). */
#ifndef FGPROF_UNWIND_AARCH64_INSTRUCTION_H
#define FGPROF_UNWIND_AARCH64_INSTRUCTION_H

#include <stdbool.h>
#include <stdint.h>

#define INSTRUCTION_BYTES 4u

/* Instructions that have these bits where the mask has ones. */
struct form {
    uint32_t mask, bits;
};

static inline bool has_form(uint32_t instruction, struct form form)
{
    return (instruction & form.mask) == form.bits;
}

static inline unsigned field(uint32_t instruction, unsigned at, unsigned bits)
{
    return instruction >> at & ((1u << bits) - 1);
}

/* The `bits` bits from bit `at` on, as a signed number. */
static inline int64_t signed_field(uint32_t instruction, unsigned at, unsigned bits)
{
    return (int64_t)((uint64_t)instruction << (64 - at - bits)) >> (64 - bits);
}

static inline bool is_unconditional_branch(uint32_t instruction)
{
    return (instruction & 0xfc000000u) == 0x14000000u; /* b */
}

/* br, blr, ret, eret, drps, and those that check a signature. */
static inline bool is_register_branch(uint32_t instruction)
{
    return (instruction & 0xfe000000u) == 0xd6000000u;
}

static inline bool is_call(uint32_t instruction)
{
    return (instruction & 0xfc000000u) == 0x94000000u || /* bl */
           (is_register_branch(instruction) && field(instruction, 21, 2) == 1);
}

static inline bool is_system_call(uint32_t instruction)
{
    return (instruction & 0xffe0001fu) == 0xd4000001u; /* svc */
}

/* Whether it is brk, hlt, dcps, a call of a hypervisor or of firmware, which only the kernel may
 * make, or no instruction at all (udf). */
static inline bool is_trap(uint32_t instruction)
{
    return instruction < 0x10000 ||
           ((instruction & 0xff000000u) == 0xd4000000u && !is_system_call(instruction));
}

/* Whether what follows is only reached from elsewhere: b, what branches by a register and is no
 * call, or a trap. */
static inline bool ends_way(uint32_t instruction)
{
    return is_unconditional_branch(instruction) ||
           (is_register_branch(instruction) && !is_call(instruction)) || is_trap(instruction);
}

/* Whether functions whose returns are signed, or that are called through pointers in a program with
 * BTI, begin with it. A bti j may follow a call of setjmp. */
static inline bool begins_function(uint32_t instruction)
{
    return instruction == 0xd503233fu || /* paciasp */
           instruction == 0xd503237fu || /* pacibsp */
           instruction == 0xd503245fu;   /* bti c */
}

/* Whether the instruction is a direct branch that is not a call. */
static inline bool branch_target(uint32_t instruction, uint64_t address, uint64_t *ret_target)
{
    int64_t words;
    if (is_unconditional_branch(instruction))
        words = signed_field(instruction, 0, 26);
    else if ((instruction & 0x7e000000u) == 0x34000000u || /* cbz, cbnz */
             (instruction & 0xff000000u) == 0x54000000u)   /* b.cond, bc.cond */
        words = signed_field(instruction, 5, 19);
    else if ((instruction & 0x7e000000u) == 0x36000000u) /* tbz, tbnz */
        words = signed_field(instruction, 5, 14);
    else
        return false;
    *ret_target = address + (uint64_t)words * INSTRUCTION_BYTES;
    return true;
}

#endif
