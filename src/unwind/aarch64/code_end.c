#include "unwind/code/code_end.h"
#include "unwind/aarch64/instruction.h"

/* Whether a jump there may be a call at the end: compilers begin functions with a mark, with a
 * frame record (stp x29, x30, [sp, #-bytes]!) or with room on the stack (sub sp, sp, #bytes). */
static bool may_begin_function(struct module *module, uint64_t address)
{
    uint32_t instruction;
    return module_read(module, address, &instruction, sizeof instruction) &&
           (begins_function(instruction) || (instruction & 0xffc07fffu) == 0xa9807bfdu ||
            (instruction & 0xff8003ffu) == 0xd10003ffu);
}

uint64_t code_end_of_function(struct module *module, uint64_t start, uint64_t limit)
{
    uint64_t at = start, furthest = start, target;
    uint32_t instruction;
    while (at < limit && module_read(module, at, &instruction, sizeof instruction)) {
        bool ends = ends_way(instruction);
        if (branch_target(instruction, at, &target) && target > furthest && target < limit &&
            (!ends || !may_begin_function(module, target)))
            furthest = target;
        at += INSTRUCTION_BYTES;
        if (ends && furthest < at)
            return at < limit ? at : limit;
    }
    return at < limit ? at : limit;
}
