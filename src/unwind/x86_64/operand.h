/* Operands of instructions that Zydis has decoded. */
#ifndef FGPROF_UNWIND_X86_64_OPERAND_H
#define FGPROF_UNWIND_X86_64_OPERAND_H

#include <Zydis/Zydis.h>
#include <stdbool.h>

static inline bool is_register(const ZydisDecodedOperand *operand, ZydisRegister number)
{
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER && operand->reg.value == number;
}

#endif
