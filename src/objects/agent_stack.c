#include "objects/agent_stack.h"

void agent_stack_fill(struct snapshot *snapshot, const uint64_t registers[AGENT_REGISTER_COUNT],
                      size_t stack_bytes, bool is_cut)
{
    static const unsigned numbers[AGENT_REGISTER_COUNT] = AGENT_REGISTERS;
    struct stack_copy *stack = &snapshot->stack;
    snapshot->registers = (struct registers){.interrupted_call = -1};
    for (size_t i = 0; i < AGENT_REGISTER_COUNT; i++)
        registers_set(&snapshot->registers, numbers[i], registers[i]);
    stack->address = registers_sp(&snapshot->registers);
    /* No stack is at the end of the address space: if the program claims that, its stack is
     * ignored. */
    stack->bytes = stack_bytes < UINT64_MAX - stack->address ? stack_bytes : 0;
    stack->end = stack->address + stack->bytes + (stack->bytes && is_cut);
    stack->end_is_known = true;
    stack->is_unreadable = false;
    snapshot->other_stack.address = snapshot->other_stack.bytes = 0;
    snapshot->other_stack.end_is_known = false;
}
