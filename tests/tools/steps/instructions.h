/* What the instructions of a program do to its call stack. */
#ifndef FGPROF_STEPS_INSTRUCTIONS_H
#define FGPROF_STEPS_INSTRUCTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum instruction_kind {
    INSTRUCTION_OTHER,
    INSTRUCTION_CALL,
    INSTRUCTION_RETURN,
    INSTRUCTION_JUMP,      /* one that is always taken */
    INSTRUCTION_LONG_JUMP, /* one that leaves all functions called since setjmp */
    INSTRUCTION_SYSCALL,
};

struct instruction {
    uint64_t pc;
    enum instruction_kind kind;
    unsigned form; /* see machine_form_name */
    uint8_t bytes;
    bool loads_sp; /* the stack pointer, from memory, by a move or an exchange */
    bool steps_sp; /* changes the stack pointer by the size of an operand, if at all */
};

#define INSTRUCTIONS_KEPT (1u << 16)

/* Those that were decoded. Zeroed at first. */
struct instructions {
    struct instruction *kept; /* by the low bits of their address */
};

/* The instruction at `pc` of the thread. Returns false where it can't be read. */
bool instructions_get(struct instructions *instructions, pid_t tid, uint64_t pc,
                      struct instruction *ret_instruction);

/* What is mapped has changed. */
void instructions_forget(struct instructions *instructions);

void instructions_free(struct instructions *instructions);

#endif
