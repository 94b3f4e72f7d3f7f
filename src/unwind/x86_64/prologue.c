/* Follows the stack pointer through a function's instructions, with the Zydis disassembler. */
#include "unwind/code/prologue.h"
#include "unwind/x86_64/instruction.h"

struct tracking {
    bool has_frame_pointer; /* it has been set */
    int64_t depth;          /* how far the stack pointer is below it */
    int64_t body_depth;     /* the same in the body, between prologue and epilogues */
    int64_t deepest;
    uint64_t *candidates;
    size_t count;
};

static void add_candidate(struct tracking *tracking, int64_t depth)
{
    if (depth < 0 || tracking->count == PROLOGUE_CANDIDATES_MAX)
        return;
    for (size_t i = 0; i < tracking->count; i++) {
        if (tracking->candidates[i] == (uint64_t)depth)
            return;
    }
    tracking->candidates[tracking->count++] = (uint64_t)depth;
}

/* lea displacement(%rbp),%rsp: after a variable-length array, or in an epilogue. */
static bool is_back_from_frame_pointer(const ZydisDecodedOperand operands[])
{
    return operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
           operands[1].mem.base == ZYDIS_REGISTER_RBP &&
           operands[1].mem.index == ZYDIS_REGISTER_NONE;
}

/* Follows an instruction whose first operand is the stack pointer. Returns false if its result is
 * unknown. */
static bool follow_change(struct tracking *tracking, ZydisMnemonic mnemonic,
                          const ZydisDecodedOperand operands[])
{
    bool has_number = operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    int64_t number = has_number ? operands[1].imm.value.s : 0;
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_SUB:
        tracking->depth += number;
        tracking->body_depth = tracking->depth;
        /* A computed amount is for a variable-length array. */
        return has_number;
    case ZYDIS_MNEMONIC_ADD:
        tracking->depth -= number;
        return has_number;
    case ZYDIS_MNEMONIC_LEA:
        if (!is_back_from_frame_pointer(operands))
            return false;
        tracking->depth = -operands[1].mem.disp.value;
        return true;
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_TEST:
        return true;
    default:
        return false;
    }
}

/* Returns false if nothing is known about the code after the instruction. */
static bool follow(struct tracking *tracking, const ZydisDecodedInstruction *instruction,
                   const ZydisDecodedOperand operands[])
{
    switch (instruction->mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
        if (is_register(&operands[0], ZYDIS_REGISTER_RBP) &&
            is_register(&operands[1], ZYDIS_REGISTER_RSP)) {
            tracking->has_frame_pointer = true;
            tracking->depth = tracking->body_depth = 0;
            return true;
        }
        break;
    case ZYDIS_MNEMONIC_PUSH:
        tracking->depth += 8;
        return true;
    case ZYDIS_MNEMONIC_POP:
        tracking->depth -= 8;
        return true;
    case ZYDIS_MNEMONIC_CALL:
        /* Set only once: arguments may be pushed for one call and not for the next. */
        if (tracking->has_frame_pointer && !tracking->body_depth)
            tracking->body_depth = tracking->depth;
        return true;
    case ZYDIS_MNEMONIC_RET:
    case ZYDIS_MNEMONIC_JMP:
        /* The code after a return or jump is reached by jumps from the body. */
        tracking->depth = tracking->body_depth ? tracking->body_depth : tracking->deepest;
        return true;
    case ZYDIS_MNEMONIC_LEAVE:
        return true;
    default:
        break;
    }
    return instruction->operand_count_visible < 1 ||
           !is_register(&operands[0], ZYDIS_REGISTER_RSP) ||
           follow_change(tracking, instruction->mnemonic, operands);
}

size_t prologue_frame_bytes(const uint8_t *code, size_t code_bytes,
                            uint64_t ret_candidates[PROLOGUE_CANDIDATES_MAX])
{
    struct tracking tracking = {.candidates = ret_candidates};
    ZydisDecoder decoder;
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (size_t at = 0; at < code_bytes; at += instruction.length) {
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + at, code_bytes - at, &instruction,
                                                 operands)) ||
            !follow(&tracking, &instruction, operands))
            break;
        if (tracking.has_frame_pointer && tracking.depth > tracking.deepest)
            tracking.deepest = tracking.depth;
    }
    if (!tracking.has_frame_pointer)
        return 0;
    add_candidate(&tracking, tracking.depth);
    add_candidate(&tracking, tracking.body_depth);
    add_candidate(&tracking, tracking.deepest);
    return tracking.count;
}
