/* What a program's instructions do to its call stack. */
#ifndef FGPROF_STEPS_INSTRUCTIONS_H
#define FGPROF_STEPS_INSTRUCTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum instruction_kind {
    INSTRUCTION_OTHER,
    INSTRUCTION_CALL,
    INSTRUCTION_RETURN,
    INSTRUCTION_JUMP,      /* unconditional */
    INSTRUCTION_LONG_JUMP, /* leaves all functions called since setjmp */
    INSTRUCTION_SYSCALL,
};

struct instruction {
    uint64_t pc;
    enum instruction_kind kind;
    unsigned form; /* see machine_form_name */
    uint8_t bytes;
    bool loads_sp; /* loads the stack pointer from memory, by a move or an exchange */
    bool steps_sp; /* changes the stack pointer by an operand's size, if at all */
};

#define INSTRUCTIONS_KEPT (1u << 16)

/* Decoded instructions. Starts zeroed. */
struct instructions {
    struct instruction *kept; /* by the low bits of their address */
};

/* The instruction at `pc` of the thread. Returns false if it can't be read. */
bool instructions_get(struct instructions *instructions, pid_t tid, uint64_t pc,
                      struct instruction *ret_instruction);

/* Call this when mappings have changed. */
void instructions_forget(struct instructions *instructions);

void instructions_free(struct instructions *instructions);

#endif
