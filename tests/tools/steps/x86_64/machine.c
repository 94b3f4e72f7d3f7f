/* Uses the Zydis disassembler. */
#include "steps/machine.h"
#include "proc/memory.h"

#include <Zydis/Zydis.h>

const unsigned long machine_break = 0xcc, machine_break_mask = 0xff; /* int3 */

const unsigned machine_ucontext_offset = 0;

uint64_t *machine_pc(struct user_regs_struct *user)
{
    return (uint64_t *)&user->rip;
}

uint64_t machine_call_number(const struct registers *registers)
{
    return registers->values[0]; /* rax */
}

static bool is_sp(const ZydisDecodedOperand *operand)
{
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER && operand->reg.value == ZYDIS_REGISTER_RSP;
}

/* call .+5 only reads the pc: nothing returns to it. */
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

bool machine_decode(pid_t tid, uint64_t pc, struct instruction *ret_instruction)
{
    static ZydisDecoder decoder;
    static bool has_decoder;
    uint8_t code[ZYDIS_MAX_INSTRUCTION_LENGTH];
    ZydisDecodedInstruction decoded;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    size_t bytes = memory_read(tid, NULL, pc, code, sizeof code);
    has_decoder = has_decoder || ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
                                                               ZYDIS_STACK_WIDTH_64));
    if (!has_decoder || !bytes ||
        !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, bytes, &decoded, operands)))
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
        .form = decoded.mnemonic,
        .bytes = decoded.length,
        .loads_sp = moves_sp && has_memory,
        .steps_sp = decoded.mnemonic == ZYDIS_MNEMONIC_PUSH ||
                    (decoded.mnemonic == ZYDIS_MNEMONIC_POP && !is_sp(&operands[0])),
    };
    return true;
}

const char *machine_form_name(unsigned form)
{
    return ZydisMnemonicGetString((ZydisMnemonic)form);
}
