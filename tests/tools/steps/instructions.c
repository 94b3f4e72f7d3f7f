#include "instructions.h"
#include "proc/memory.h"

#include <stdlib.h>
#include <string.h>

static bool is_sp(const ZydisDecodedOperand *operand)
{
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER && operand->reg.value == ZYDIS_REGISTER_RSP;
}

/* call .+5 only asks where it is: nothing returns to it. */
static bool calls_next(const ZydisDecodedOperand *target)
{
    return target->type == ZYDIS_OPERAND_TYPE_IMMEDIATE && target->imm.is_relative &&
           target->imm.value.s == 0;
}

static enum instruction_kind kind_of(const ZydisDecodedInstruction *decoded,
                                     const ZydisDecodedOperand operands[])
{
    switch (decoded->mnemonic) {
    case ZYDIS_MNEMONIC_CALL:
        return calls_next(&operands[0]) ? INSTRUCTION_OTHER : INSTRUCTION_CALL;
    case ZYDIS_MNEMONIC_RET:
        return INSTRUCTION_RETURN;
    case ZYDIS_MNEMONIC_JMP:
        return INSTRUCTION_JUMP;
    case ZYDIS_MNEMONIC_SYSCALL:
        return INSTRUCTION_SYSCALL;
    default:
        return INSTRUCTION_OTHER;
    }
}

static bool decode(struct instructions *instructions, pid_t tid, uint64_t pc,
                   struct instruction *ret_instruction)
{
    uint8_t code[ZYDIS_MAX_INSTRUCTION_LENGTH];
    ZydisDecodedInstruction decoded;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    size_t bytes = memory_read(tid, NULL, pc, code, sizeof code);
    if (!bytes || !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&instructions->decoder, code, bytes,
                                                       &decoded, operands)))
        return false;
    bool moves_sp =
        (decoded.mnemonic == ZYDIS_MNEMONIC_MOV && is_sp(&operands[0])) ||
        (decoded.mnemonic == ZYDIS_MNEMONIC_XCHG && (is_sp(&operands[0]) || is_sp(&operands[1])));
    bool has_memory =
        decoded.operand_count_visible == 2 && (operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY ||
                                               operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY);
    *ret_instruction = (struct instruction){
        .pc = pc,
        .kind = kind_of(&decoded, operands),
        .mnemonic = decoded.mnemonic,
        .bytes = decoded.length,
        .loads_sp = moves_sp && has_memory,
        .steps_sp = decoded.mnemonic == ZYDIS_MNEMONIC_PUSH ||
                    (decoded.mnemonic == ZYDIS_MNEMONIC_POP && !is_sp(&operands[0])),
    };
    return true;
}

bool instructions_get(struct instructions *instructions, pid_t tid, uint64_t pc,
                      struct instruction *ret_instruction)
{
    if (!instructions->has_decoder) {
        instructions->kept = calloc(INSTRUCTIONS_KEPT, sizeof *instructions->kept);
        instructions->has_decoder =
            instructions->kept &&
            ZYAN_SUCCESS(ZydisDecoderInit(&instructions->decoder, ZYDIS_MACHINE_MODE_LONG_64,
                                          ZYDIS_STACK_WIDTH_64));
        if (!instructions->has_decoder)
            return false;
    }
    struct instruction *kept = &instructions->kept[pc % INSTRUCTIONS_KEPT];
    if ((kept->pc != pc || !pc) && !decode(instructions, tid, pc, kept))
        return false;
    *ret_instruction = *kept;
    return true;
}

void instructions_forget(struct instructions *instructions)
{
    if (instructions->kept)
        memset(instructions->kept, 0, INSTRUCTIONS_KEPT * sizeof *instructions->kept);
}

void instructions_free(struct instructions *instructions)
{
    free(instructions->kept);
    *instructions = (struct instructions){0};
}
