/* Follows the stack pointer through a function's instructions, with the Zydis disassembler. */
#include "unwind/code/code_frame.h"
#include "unwind/x86_64/instruction.h"
#include <string.h>

#define WORD_BYTES 8
#define DEPTH_MAX (1 << 20) /* of a frame */
#define JUMPS_MAX 128
#define PASSES_MAX 4 /* a loop's body may be reached only by the jump at its end */

/* Depths are in bytes below the function's return address. */
struct state {
    bool is_known;
    bool has_frame_pointer; /* rbp points to where the caller's was saved */
    int32_t depth;          /* of the stack pointer */
    /* The stack pointer was aligned before a frame pointer was set up. The frame pointer is then
     * below a copy of the return address (-mstackrealign, or locals that are aligned to more than
     * 16 bytes). */
    bool is_realigned;
    int32_t saved_depth; /* where the caller's frame pointer was saved; 0: it was not */
};

struct flow {
    size_t code_bytes;
    struct state now;
    struct {
        size_t target;
        struct state state;
    } jumps[JUMPS_MAX];
    size_t jump_count;
};

static void forget(struct state *state)
{
    *state = (struct state){0};
}

static void move_sp(struct state *state, int64_t deeper)
{
    if (deeper < -DEPTH_MAX || deeper > DEPTH_MAX || state->depth + deeper < 0 ||
        state->depth + deeper > DEPTH_MAX)
        forget(state);
    else
        state->depth += (int32_t)deeper;
}

static void push(struct state *state, const ZydisDecodedOperand *operand)
{
    move_sp(state, WORD_BYTES);
    if (is_register(operand, ZYDIS_REGISTER_RBP) && !state->saved_depth)
        state->saved_depth = state->depth;
}

static void pop(struct state *state, const ZydisDecodedOperand *operand)
{
    if (is_register(operand, ZYDIS_REGISTER_RSP)) {
        forget(state);
        return;
    }
    if (is_register(operand, ZYDIS_REGISTER_RBP)) {
        /* Restores the caller's frame pointer, if it was saved at this depth. */
        if (state->saved_depth != state->depth)
            forget(state);
        state->has_frame_pointer = false;
        state->saved_depth = 0;
    }
    move_sp(state, -WORD_BYTES);
}

/* mov %rbp,%rsp, or lea with a displacement. */
static void sp_from_frame_pointer(struct state *state, int64_t displacement)
{
    if (!state->has_frame_pointer || displacement < -DEPTH_MAX || displacement > DEPTH_MAX)
        forget(state);
    else
        state->depth = state->saved_depth;
    if (state->is_known)
        move_sp(state, -displacement);
}

/* lea displacement(%rsp or %rbp),%rsp. */
static void lea_to_sp(struct state *state, const ZydisDecodedOperand *from)
{
    if (from->type == ZYDIS_OPERAND_TYPE_MEMORY && from->mem.index == ZYDIS_REGISTER_NONE &&
        from->mem.base == ZYDIS_REGISTER_RSP)
        move_sp(state, -from->mem.disp.value);
    else if (from->type == ZYDIS_OPERAND_TYPE_MEMORY && from->mem.index == ZYDIS_REGISTER_NONE &&
             from->mem.base == ZYDIS_REGISTER_RBP)
        sp_from_frame_pointer(state, from->mem.disp.value);
    else
        forget(state);
}

static void write_sp(struct state *state, ZydisMnemonic mnemonic,
                     const ZydisDecodedOperand operands[])
{
    bool has_number = operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    /* Once the frame pointer is set, the size of the rest of the frame need not be known. */
    bool is_needed = !state->has_frame_pointer;
    if (mnemonic == ZYDIS_MNEMONIC_SUB && has_number)
        move_sp(state, operands[1].imm.value.s);
    else if (mnemonic == ZYDIS_MNEMONIC_ADD && has_number)
        move_sp(state, -operands[1].imm.value.s);
    else if (mnemonic == ZYDIS_MNEMONIC_LEA)
        lea_to_sp(state, &operands[1]);
    else if (mnemonic == ZYDIS_MNEMONIC_MOV && is_register(&operands[1], ZYDIS_REGISTER_RBP))
        sp_from_frame_pointer(state, 0);
    else if (is_needed && mnemonic == ZYDIS_MNEMONIC_AND && has_number)
        state->is_realigned = true;
    else if (is_needed || (mnemonic != ZYDIS_MNEMONIC_AND && mnemonic != ZYDIS_MNEMONIC_SUB))
        forget(state);
}

/* For an instruction other than push and pop that writes rbp. */
static void write_frame_pointer(struct state *state, ZydisMnemonic mnemonic,
                                const ZydisDecodedOperand operands[])
{
    bool is_set_up = mnemonic == ZYDIS_MNEMONIC_MOV &&
                     is_register(&operands[1], ZYDIS_REGISTER_RSP) && state->saved_depth &&
                     state->saved_depth == state->depth;
    if (is_set_up)
        state->has_frame_pointer = true;
    else if (state->has_frame_pointer || !state->saved_depth)
        forget(state); /* it was the only way to find the caller's */
}

/* mov %rbp,displacement(%rsp): HotSpot's compiler saves rbp this way, and restores it with pop. */
static bool is_save(const struct state *state, const ZydisDecodedOperand operands[])
{
    const ZydisDecodedOperandMem *place = &operands[0].mem;
    return operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY && place->base == ZYDIS_REGISTER_RSP &&
           place->index == ZYDIS_REGISTER_NONE && is_register(&operands[1], ZYDIS_REGISTER_RBP) &&
           !state->has_frame_pointer && !state->saved_depth && place->disp.value >= 0 &&
           place->disp.value < state->depth;
}

static bool writes(const ZydisDecodedInstruction *instruction, const ZydisDecodedOperand operands[],
                   ZydisRegister wide)
{
    for (unsigned i = 0; i < instruction->operand_count; i++) {
        const ZydisDecodedOperand *operand = &operands[i];
        if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
            (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
            ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operand->reg.value) ==
                wide)
            return true;
    }
    return false;
}

static const struct state *state_of_jump_to(const struct flow *flow, size_t target)
{
    for (size_t i = 0; i < flow->jump_count; i++) {
        if (flow->jumps[i].target == target)
            return &flow->jumps[i].state;
    }
    return NULL;
}

static void note_jump(struct flow *flow, size_t at, const ZydisDecodedInstruction *instruction,
                      const ZydisDecodedOperand *operand)
{
    size_t target = at + instruction->length + (size_t)operand->imm.value.s;
    if (operand->type != ZYDIS_OPERAND_TYPE_IMMEDIATE || target >= flow->code_bytes ||
        !flow->now.is_known || flow->jump_count == JUMPS_MAX || state_of_jump_to(flow, target))
        return;
    flow->jumps[flow->jump_count].target = target;
    flow->jumps[flow->jump_count++].state = flow->now;
}

/* The state at a jump to this place is more reliable than that of the code before it, which may end
 * in a call that does not return. */
static void arrive(struct flow *flow, size_t at)
{
    const struct state *state = state_of_jump_to(flow, at);
    if (state)
        flow->now = *state;
}

static void follow(struct flow *flow, size_t at, const ZydisDecodedInstruction *instruction,
                   const ZydisDecodedOperand operands[])
{
    struct state *state = &flow->now;
    switch (instruction->mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
        push(state, &operands[0]);
        return;
    case ZYDIS_MNEMONIC_PUSHFQ:
        move_sp(state, WORD_BYTES);
        return;
    case ZYDIS_MNEMONIC_POP:
        pop(state, &operands[0]);
        return;
    case ZYDIS_MNEMONIC_POPFQ:
        move_sp(state, -WORD_BYTES);
        return;
    case ZYDIS_MNEMONIC_LEAVE:
        sp_from_frame_pointer(state, 0);
        if (state->is_known)
            pop(state, &(ZydisDecodedOperand){.type = ZYDIS_OPERAND_TYPE_REGISTER,
                                              .reg.value = ZYDIS_REGISTER_RBP});
        return;
    case ZYDIS_MNEMONIC_CALL:
    case ZYDIS_MNEMONIC_SYSCALL:
        return; /* they do not change the stack pointer */
    case ZYDIS_MNEMONIC_JMP:
        note_jump(flow, at, instruction, &operands[0]);
        forget(state);
        return;
    case ZYDIS_MNEMONIC_RET:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_INT3:
        forget(state);
        return;
    default:
        break;
    }
    if (instruction->mnemonic == ZYDIS_MNEMONIC_MOV && is_save(state, operands))
        state->saved_depth = state->depth - (int32_t)operands[0].mem.disp.value;
    else if (instruction->meta.category == ZYDIS_CATEGORY_COND_BR)
        note_jump(flow, at, instruction, &operands[0]);
    else if (writes(instruction, operands, ZYDIS_REGISTER_RSP))
        write_sp(state, instruction->mnemonic, operands);
    else if (writes(instruction, operands, ZYDIS_REGISTER_RBP))
        write_frame_pointer(state, instruction->mnemonic, operands);
}

static struct code_frame frame_of(const struct state *state)
{
    if (!state->is_known)
        return (struct code_frame){.kind = CODE_FRAME_UNKNOWN};
    /* How far up the caller's frame is depends on where it was. */
    if (state->is_realigned)
        return (struct code_frame){.kind = CODE_FRAME_LOST};
    if (state->has_frame_pointer)
        return (struct code_frame){.kind = CODE_FRAME_BY_POINTER};
    return (struct code_frame){
        .kind = CODE_FRAME_BY_SP,
        .caller_sp = state->depth + WORD_BYTES,
        .return_address = state->depth,
        .has_saved_frame_pointer = state->saved_depth != 0,
        .saved_frame_pointer = state->depth - state->saved_depth,
    };
}

static struct code_frame follow_to(struct flow *flow, const uint8_t *code, size_t at)
{
    ZydisDecoder decoder;
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    struct code_frame found = {.kind = CODE_FRAME_UNKNOWN};
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    flow->now = (struct state){.is_known = true};
    for (size_t done = 0; done < flow->code_bytes; done += instruction.length) {
        arrive(flow, done);
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + done, flow->code_bytes - done,
                                                 &instruction, operands)))
            break;
        if (at - done < instruction.length)
            found = frame_of(&flow->now);
        if (found.kind != CODE_FRAME_UNKNOWN)
            break;
        follow(flow, done, &instruction, operands);
    }
    return found;
}

struct code_frame code_frame_at(const uint8_t *code, size_t code_bytes, size_t at)
{
    struct flow flow = {.code_bytes = code_bytes};
    struct code_frame found = {.kind = CODE_FRAME_UNKNOWN};
    size_t jumps_before = SIZE_MAX;
    for (unsigned pass = 0;
         pass < PASSES_MAX && flow.jump_count != jumps_before && found.kind == CODE_FRAME_UNKNOWN;
         pass++) {
        jumps_before = flow.jump_count;
        found = follow_to(&flow, code, at);
    }
    return found;
}

/* Linkage stubs, as linkers write them (System V psABI for AMD64, 5.2; binutils' bfd/elfxx-x86.c,
 * lld's ELF/Arch/X86_64.cpp, mold's elf/arch-x86-64.cc). An entry jumps through its slot. If that
 * is not bound yet, the entry pushes a number (mold: moves it to r11) and jumps to the first entry,
 * which pushes a word (mold: both words) and jumps to the dynamic linker. */
static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa}, mov_r11[] = {0x41, 0xbb},
                     push_r11[] = {0x41, 0x53}, push_number[] = {0x68},
                     push_global[] = {0xff, 0x35}, jump_through[] = {0xff, 0x25}, jump[] = {0xe9},
                     bnd[] = {0xf2};

#define MOV_R11_BYTES 6
#define PUSH_NUMBER_BYTES 5
#define PUSH_GLOBAL_BYTES 6

#define BEGINS_WITH(code, opcode) (memcmp(code, opcode, sizeof(opcode)) == 0)

/* Whether a stub continues from here to its end. */
static bool is_stub(const uint8_t *code)
{
    if (BEGINS_WITH(code, endbr64))
        code += sizeof endbr64;
    if (BEGINS_WITH(code, mov_r11))
        code += MOV_R11_BYTES;
    if (BEGINS_WITH(code, push_r11))
        code += sizeof push_r11;
    if (BEGINS_WITH(code, push_global))
        code += PUSH_GLOBAL_BYTES;
    bool has_number = BEGINS_WITH(code, push_number);
    if (has_number)
        code += PUSH_NUMBER_BYTES;
    else
        has_number = BEGINS_WITH(code - PUSH_NUMBER_BYTES, push_number);
    if (BEGINS_WITH(code, bnd))
        code += sizeof bnd;
    return BEGINS_WITH(code, jump_through) || (has_number && BEGINS_WITH(code, jump));
}

/* How many words the stub has pushed before this instruction. */
static int32_t pushed_before(const uint8_t *code)
{
    if (BEGINS_WITH(code - PUSH_GLOBAL_BYTES, push_global))
        return 2;
    if (BEGINS_WITH(code, push_global) || BEGINS_WITH(code - PUSH_NUMBER_BYTES, push_number))
        return 1;
    return 0;
}

struct code_frame code_frame_in_stub(const uint8_t code[CODE_STUB_BYTES])
{
    const uint8_t *here = code + CODE_STUB_BYTES_BEFORE;
    if (!is_stub(here))
        return (struct code_frame){.kind = CODE_FRAME_UNKNOWN};
    int32_t depth = WORD_BYTES * pushed_before(here);
    return (struct code_frame){
        .kind = CODE_FRAME_BY_SP, .caller_sp = depth + WORD_BYTES, .return_address = depth};
}
