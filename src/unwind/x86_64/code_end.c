#include "unwind/code/code_end.h"
#include "unwind/x86_64/instruction.h"

/* Functions begin at multiples of this. A jump to such an address may be a tail call. */
#define FUNCTION_ALIGNMENT 16

static bool ends_way(ZydisMnemonic mnemonic)
{
    return mnemonic == ZYDIS_MNEMONIC_RET || mnemonic == ZYDIS_MNEMONIC_JMP ||
           mnemonic == ZYDIS_MNEMONIC_UD2 || mnemonic == ZYDIS_MNEMONIC_HLT ||
           mnemonic == ZYDIS_MNEMONIC_INT3;
}

uint64_t code_end_of_function(struct module *module, uint64_t start, uint64_t limit)
{
    ZydisDecoder decoder;
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    uint64_t at = start, furthest = start;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    while (at < limit && instruction_at(&decoder, module, at, &instruction, operands)) {
        bool ends = ends_way(instruction.mnemonic);
        at += instruction.length;
        if ((instruction.mnemonic == ZYDIS_MNEMONIC_JMP ||
             instruction.meta.category == ZYDIS_CATEGORY_COND_BR) &&
            operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
            uint64_t target = at + (uint64_t)operands[0].imm.value.s;
            if (target > furthest && target < limit && (!ends || target % FUNCTION_ALIGNMENT))
                furthest = target;
        }
        if (ends && furthest < at)
            return at;
    }
    return at < limit ? at : limit;
}
