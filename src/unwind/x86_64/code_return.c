/* Follows all paths from an instruction to the returns of its function, with the Zydis
 * disassembler.
 *
 * Registers and stack slots hold values in terms of those at the start. Every path reaches its
 * return with the stack pointer at the return address, so all paths must agree. If two do not, a
 * call that does not return was followed into other code, or the code is not a function. */
#include "unwind/code/code_return.h"
#include "unwind/code/last_call.h"
#include "unwind/x86_64/instruction.h"

#include <stdlib.h>
#include <string.h>

#define WORD_BYTES 8
#define REGISTERS 16
#define OFFSET_MAX (1 << 20)
#define INSTRUCTIONS_MAX 1024
#define SEEN_SLOTS 2048 /* a power of two, more than the instructions */
#define PATHS_MAX 32
#define STORED_MAX 24
/* Stands for the stack pointer after it was aligned, when it is not known how far it moved. */
#define REALIGNED 0xfe

/* DWARF numbers (System V psABI for AMD64, figure 3.36). */
enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP };

static const struct code_value unknown = {.kind = CODE_VALUE_UNKNOWN};

/* A word that was written on the path. */
struct stored {
    struct code_value at, value;
};

/* The state of a path at its current instruction. */
struct path {
    uint64_t address;
    struct code_value registers[REGISTERS];
    struct stored stored[STORED_MAX];
    unsigned stored_count;
    bool has_forgotten; /* more was written than there is room for */
    int64_t call;       /* the number of the next system call; -1: not known */
};

struct seen {
    uint64_t address_plus_1; /* 0: free */
    struct code_value sp;
};

struct search {
    struct module *module;
    ZydisDecoder decoder;
    unsigned instructions_left;
    struct path paths[PATHS_MAX]; /* still to be followed */
    size_t path_count;
    struct seen seen[SEEN_SLOTS];
    struct code_return found;
    bool has_found, has_contradiction;
};

static bool is_same(const struct code_value *left, const struct code_value *right)
{
    return left->kind == right->kind && left->register_number == right->register_number &&
           left->offset == right->offset && left->then_offset == right->then_offset;
}

static int dwarf_number(ZydisRegister number)
{
    static const uint8_t numbers[REGISTERS] = {RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI,
                                               8,   9,   10,  11,  12,  13,  14,  15};
    ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, number);
    return wide >= ZYDIS_REGISTER_RAX && wide <= ZYDIS_REGISTER_R15
               ? numbers[wide - ZYDIS_REGISTER_RAX]
               : -1;
}

/* The DWARF number of an operand that is a whole register, or -1. */
static int whole_register(const ZydisDecodedOperand *operand)
{
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER && operand->size == 64
               ? dwarf_number(operand->reg.value)
               : -1;
}

static struct code_value plus(struct code_value value, int64_t number)
{
    int32_t *offset = value.kind == CODE_VALUE_MEMORY ? &value.then_offset : &value.offset;
    if (value.kind == CODE_VALUE_UNKNOWN || value.kind == CODE_VALUE_FAR || number < -OFFSET_MAX ||
        number > OFFSET_MAX || *offset + number < -OFFSET_MAX || *offset + number > OFFSET_MAX)
        return unknown;
    *offset += (int32_t)number;
    return value;
}

/* The address of a memory operand. */
static struct code_value address_of(const struct path *path, const ZydisDecodedOperand *operand)
{
    int base = dwarf_number(operand->mem.base);
    bool is_plain =
        operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.index == ZYDIS_REGISTER_NONE &&
        operand->mem.segment != ZYDIS_REGISTER_FS && operand->mem.segment != ZYDIS_REGISTER_GS;
    return is_plain && base >= 0 ? plus(path->registers[base], operand->mem.disp.value) : unknown;
}

static struct code_value load(const struct path *path, struct code_value at)
{
    for (unsigned i = path->stored_count; i-- > 0;) {
        if (is_same(&path->stored[i].at, &at))
            return path->stored[i].value;
    }
    bool is_below_start =
        at.kind == CODE_VALUE_REGISTER && at.register_number == RSP && at.offset < 0;
    if (at.kind == CODE_VALUE_UNKNOWN || at.kind == CODE_VALUE_FAR || is_below_start ||
        at.register_number == REALIGNED || path->has_forgotten)
        return unknown;
    at.kind = at.kind == CODE_VALUE_MEMORY ? CODE_VALUE_FAR : CODE_VALUE_MEMORY;
    return at;
}

static void store(struct path *path, struct code_value at, struct code_value value)
{
    if (at.kind == CODE_VALUE_UNKNOWN)
        return;
    for (unsigned i = 0; i < path->stored_count; i++) {
        if (is_same(&path->stored[i].at, &at)) {
            path->stored[i].value = value;
            return;
        }
    }
    if (path->stored_count == STORED_MAX)
        path->has_forgotten = true;
    else
        path->stored[path->stored_count++] = (struct stored){at, value};
}

static void push(struct path *path, struct code_value value)
{
    path->registers[RSP] = plus(path->registers[RSP], -WORD_BYTES);
    store(path, path->registers[RSP], value);
}

static struct code_value pop(struct path *path)
{
    struct code_value value = load(path, path->registers[RSP]);
    path->registers[RSP] = plus(path->registers[RSP], WORD_BYTES);
    return value;
}

/* The value of an operand that is a whole register or word, if known. */
static struct code_value read_operand(const struct path *path, const ZydisDecodedOperand *operand)
{
    int number = whole_register(operand);
    if (number >= 0)
        return path->registers[number];
    return operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->size == 64
               ? load(path, address_of(path, operand))
               : unknown;
}

static void write_operand(struct path *path, const ZydisDecodedOperand *operand,
                          struct code_value value)
{
    int number = whole_register(operand);
    if (number >= 0)
        path->registers[number] = value;
    else if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->size == 64)
        store(path, address_of(path, operand), value);
}

/* Marks everything that the instruction writes as unknown. */
static void forget_written(struct path *path, const ZydisDecodedInstruction *instruction,
                           const ZydisDecodedOperand operands[])
{
    for (unsigned i = 0; i < instruction->operand_count; i++) {
        int number = operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
                             (operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
                         ? dwarf_number(operands[i].reg.value)
                         : -1;
        if (number >= 0)
            path->registers[number] = unknown;
        if (number == RAX)
            path->call = -1;
    }
}

/* mov, lea, and addition or subtraction of a constant. Returns false for another instruction. */
static bool move(struct path *path, const ZydisDecodedInstruction *instruction,
                 const ZydisDecodedOperand operands[])
{
    struct code_value value = unknown;
    bool has_number = operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    if (instruction->mnemonic == ZYDIS_MNEMONIC_MOV)
        value = read_operand(path, &operands[1]);
    else if (instruction->mnemonic == ZYDIS_MNEMONIC_LEA)
        value = address_of(path, &operands[1]);
    else if (instruction->mnemonic == ZYDIS_MNEMONIC_ADD && has_number)
        value = plus(read_operand(path, &operands[0]), operands[1].imm.value.s);
    else if (instruction->mnemonic == ZYDIS_MNEMONIC_SUB && has_number)
        value = plus(read_operand(path, &operands[0]), -operands[1].imm.value.s);
    else
        return false;
    forget_written(path, instruction, operands);
    if (instruction->mnemonic == ZYDIS_MNEMONIC_MOV && has_number &&
        dwarf_number(operands[0].reg.value) == RAX)
        path->call = operands[1].imm.value.s;
    write_operand(path, &operands[0], value);
    return true;
}

/* An `and` that aligns the stack pointer. */
static void realign(struct path *path)
{
    bool was_realigned = path->registers[RSP].register_number == REALIGNED;
    path->registers[RSP] = was_realigned ? unknown
                                         : (struct code_value){.kind = CODE_VALUE_REGISTER,
                                                               .register_number = REALIGNED};
}

/* According to the psABI, a call may change these registers. */
static void forget_after_call(struct path *path)
{
    static const uint8_t numbers[] = {RAX, RDX, RCX, RSI, RDI, 8, 9, 10, 11};
    for (size_t i = 0; i < sizeof numbers; i++)
        path->registers[numbers[i]] = unknown;
    path->call = -1;
}

static void add_return(struct search *search, const struct path *path)
{
    struct code_value sp = path->registers[RSP], frame_pointer = path->registers[RBP];
    if (sp.kind == CODE_VALUE_UNKNOWN || sp.kind == CODE_VALUE_FAR ||
        sp.register_number == REALIGNED)
        return;
    if (frame_pointer.register_number == REALIGNED)
        frame_pointer = unknown;
    if (!search->has_found)
        search->found = (struct code_return){.sp = sp, .frame_pointer = frame_pointer};
    else if (!is_same(&search->found.sp, &sp))
        search->has_contradiction = true;
    else if (!is_same(&search->found.frame_pointer, &frame_pointer))
        search->found.frame_pointer = unknown;
    search->has_found = true;
}

static void add_path(struct search *search, const struct path *path, uint64_t address)
{
    if (search->path_count == PATHS_MAX)
        return;
    struct path *added = &search->paths[search->path_count++];
    *added = *path;
    added->address = address;
}

/* Returns false if the path ends here. */
static bool jump(struct search *search, struct path *path, const ZydisDecodedOperand *operand)
{
    if (operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        path->address += (uint64_t)operand->imm.value.s;
        return true;
    }
    /* Through a pointer in the module: a tail call to a function of another module. */
    if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.base == ZYDIS_REGISTER_RIP &&
        operand->mem.index == ZYDIS_REGISTER_NONE)
        add_return(search, path);
    return false;
}

/* exit, exit_group and rt_sigreturn do not return. */
static bool call_returns(const struct path *path)
{
    return path->call != 60 && path->call != 231 && path->call != 15;
}

/* Handles instructions after which a path may end or fork. Sets *ret_goes_on; returns false for
 * another instruction. path->address is already that of the next instruction. */
static bool branch(struct search *search, struct path *path,
                   const ZydisDecodedInstruction *instruction, const ZydisDecodedOperand operands[],
                   bool *ret_goes_on)
{
    *ret_goes_on = false;
    switch (instruction->mnemonic) {
    case ZYDIS_MNEMONIC_RET:
        add_return(search, path);
        return true;
    case ZYDIS_MNEMONIC_JMP:
        *ret_goes_on = jump(search, path, &operands[0]);
        return true;
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_INT3:
        return true;
    case ZYDIS_MNEMONIC_SYSCALL:
        *ret_goes_on = call_returns(path);
        forget_written(path, instruction, operands);
        return true;
    case ZYDIS_MNEMONIC_CALL:
        /* A call to the next instruction only pushes its address. */
        *ret_goes_on = operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || operands[0].imm.value.s;
        forget_after_call(path);
        return true;
    default:
        break;
    }
    *ret_goes_on = true;
    if (instruction->meta.category != ZYDIS_CATEGORY_COND_BR)
        return false;
    if (operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
        add_path(search, path, path->address + (uint64_t)operands[0].imm.value.s);
    return true;
}

/* Handles all other instructions. */
static void follow(struct path *path, const ZydisDecodedInstruction *instruction,
                   const ZydisDecodedOperand operands[])
{
    struct code_value value;
    switch (instruction->mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
        push(path, read_operand(path, &operands[0]));
        return;
    case ZYDIS_MNEMONIC_PUSHFQ:
        push(path, unknown);
        return;
    case ZYDIS_MNEMONIC_POP:
        value = pop(path);
        write_operand(path, &operands[0], value);
        return;
    case ZYDIS_MNEMONIC_POPFQ:
        pop(path);
        return;
    case ZYDIS_MNEMONIC_LEAVE:
        path->registers[RSP] = path->registers[RBP];
        path->registers[RBP] = pop(path);
        return;
    default:
        break;
    }
    if (move(path, instruction, operands))
        return;
    if (instruction->mnemonic == ZYDIS_MNEMONIC_AND && whole_register(&operands[0]) == RSP)
        realign(path);
    else
        forget_written(path, instruction, operands);
}

/* Notes that a path has reached this place; returns false if one had before. */
static bool note_seen(struct search *search, const struct path *path)
{
    const struct code_value *sp = &path->registers[RSP];
    size_t at = (size_t)((path->address * 0x9e3779b97f4a7c15u) >> 32) & (SEEN_SLOTS - 1);
    while (search->seen[at].address_plus_1 && search->seen[at].address_plus_1 != path->address + 1)
        at = (at + 1) & (SEEN_SLOTS - 1);
    struct seen *seen = &search->seen[at];
    if (!seen->address_plus_1) {
        *seen = (struct seen){path->address + 1, *sp};
        return true;
    }
    if (sp->kind != CODE_VALUE_UNKNOWN && seen->sp.kind != CODE_VALUE_UNKNOWN &&
        !is_same(sp, &seen->sp))
        search->has_contradiction = true;
    return false;
}

/* Whether a call does not return to the code after it: that is padding, as between functions, or
 * the landing pad (endbr64) at the beginning of another one. */
static bool is_last_call(const struct search *search, uint64_t address)
{
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    return call_is_known_last(search->module, address) ||
           !instruction_at(&search->decoder, search->module, address, &instruction, operands) ||
           instruction.mnemonic == ZYDIS_MNEMONIC_NOP ||
           instruction.mnemonic == ZYDIS_MNEMONIC_INT3 ||
           instruction.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
}

static void follow_path(struct search *search, struct path *path)
{
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    bool goes_on = true;
    while (
        goes_on && !search->has_contradiction && search->instructions_left &&
        note_seen(search, path) &&
        instruction_at(&search->decoder, search->module, path->address, &instruction, operands)) {
        search->instructions_left--;
        path->address += instruction.length;
        if (!branch(search, path, &instruction, operands, &goes_on))
            follow(path, &instruction, operands);
        if (instruction.mnemonic == ZYDIS_MNEMONIC_CALL && is_last_call(search, path->address))
            goes_on = false;
    }
}

bool code_return_find(struct module *module, uint64_t address, bool is_after_call,
                      struct code_return *ret_return)
{
    struct search *search = calloc(1, sizeof *search);
    struct path path = {.address = address, .call = -1};
    if (!search)
        return false;
    search->module = module;
    search->instructions_left = INSTRUCTIONS_MAX;
    ZydisDecoderInit(&search->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (unsigned i = 0; i < REGISTERS; i++)
        path.registers[i] =
            (struct code_value){.kind = CODE_VALUE_REGISTER, .register_number = (uint8_t)i};
    if (!is_after_call || !is_last_call(search, address))
        add_path(search, &path, address);
    while (search->path_count && search->instructions_left && !search->has_contradiction) {
        path = search->paths[--search->path_count];
        follow_path(search, &path);
    }
    bool is_certain = search->has_found && !search->has_contradiction;
    if (is_certain)
        *ret_return = search->found;
    free(search);
    return is_certain;
}
