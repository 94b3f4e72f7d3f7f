/* Decodes the instructions of a module, with the Zydis disassembler. */
#ifndef FGPROF_UNWIND_X86_64_INSTRUCTION_H
#define FGPROF_UNWIND_X86_64_INSTRUCTION_H

#include "elf/module.h"

#include <Zydis/Zydis.h>

/* Decodes the instruction at one of the module's own addresses. Returns false if there is none. */
static inline bool instruction_at(const ZydisDecoder *decoder, struct module *module,
                                  uint64_t address, ZydisDecodedInstruction *ret_instruction,
                                  ZydisDecodedOperand ret_operands[ZYDIS_MAX_OPERAND_COUNT])
{
    uint8_t code[ZYDIS_MAX_INSTRUCTION_LENGTH];
    size_t bytes = sizeof code;
    /* Fewer bytes follow the last mapped instructions. */
    while (bytes && !module_read(module, address, code, bytes))
        bytes--;
    return bytes && ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, code, bytes, ret_instruction,
                                                        ret_operands));
}

static inline bool is_register(const ZydisDecodedOperand *operand, ZydisRegister number)
{
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER && operand->reg.value == number;
}

#endif
