/* Instructions from the Arm Architecture Reference Manual for A-profile, C4.1, "Branches, Exception
 * Generating and System instructions". */
#include "steps/machine.h"
#include "proc/memory.h"

#include <stdio.h>

const unsigned long machine_break = 0xd4200000u, machine_break_mask = 0xffffffffu; /* brk #0 */

const unsigned machine_ucontext_offset = 128; /* after a siginfo */

uint64_t *machine_pc(struct user_regs_struct *user)
{
    return (uint64_t *)&user->pc;
}

uint64_t machine_call_number(const struct registers *registers)
{
    return registers->values[8];
}

static bool is(uint32_t instruction, uint32_t mask, uint32_t bits)
{
    return (instruction & mask) == bits;
}

/* Only longjmp uses br x30: functions return with ret, and stubs jump through other registers. */
static enum instruction_kind kind_of(uint32_t instruction)
{
    static const struct {
        uint32_t mask, bits;
        enum instruction_kind kind;
    } forms[] = {
        {0xffffffffu, 0x94000001u, INSTRUCTION_OTHER},     /* bl .+4 only reads the pc */
        {0xfc000000u, 0x94000000u, INSTRUCTION_CALL},      /* bl */
        {0xfffffc1fu, 0xd63f0000u, INSTRUCTION_CALL},      /* blr */
        {0xfefff800u, 0xd63f0800u, INSTRUCTION_CALL},      /* blraa, blrab, blraaz, blrabz */
        {0xfffffc1fu, 0xd65f0000u, INSTRUCTION_RETURN},    /* ret */
        {0xfffffbffu, 0xd65f0bffu, INSTRUCTION_RETURN},    /* retaa, retab */
        {0xfc000000u, 0x14000000u, INSTRUCTION_JUMP},      /* b */
        {0xffffffffu, 0xd61f03c0u, INSTRUCTION_LONG_JUMP}, /* br x30 */
        {0xfffffc1fu, 0xd61f0000u, INSTRUCTION_JUMP},      /* br */
        {0xfefff800u, 0xd61f0800u, INSTRUCTION_JUMP},      /* braa, brab, braaz, brabz */
        {0xffe0001fu, 0xd4000001u, INSTRUCTION_SYSCALL},   /* svc */
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (is(instruction, forms[i].mask, forms[i].bits))
            return forms[i].kind;
    }
    return INSTRUCTION_OTHER;
}

bool machine_decode(pid_t tid, uint64_t pc, struct instruction *ret_instruction)
{
    uint32_t instruction;
    if (memory_read(tid, NULL, pc, &instruction, sizeof instruction) != sizeof instruction)
        return false;
    *ret_instruction = (struct instruction){
        .pc = pc, .kind = kind_of(instruction), .form = instruction, .bytes = sizeof instruction};
    return true;
}

const char *machine_form_name(unsigned form)
{
    static char name[16];
    snprintf(name, sizeof name, "%08x", form);
    return name;
}
