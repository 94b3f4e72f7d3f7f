#include "unwind/rule.h"
#include "elf/dwarf.h"

/* The value of an expression, as far as it is known before the registers are: a constant; register
 * + index * scale + offset; or what is in memory there, + another offset. */
struct symbolic {
    bool has_register;
    bool is_in_memory;
    uint8_t register_number;
    uint8_t index_number, scale; /* another register; 0: without one */
    int64_t offset;              /* added; or the constant's value */
    int64_t then_offset;         /* added to what was in memory */
};

#define STACK_MAX 8

struct evaluation {
    struct symbolic stack[STACK_MAX];
    unsigned depth;
    uint64_t address; /* of the code: it gives the program counter */
};

static bool push(struct evaluation *evaluation, struct symbolic value)
{
    if (evaluation->depth == STACK_MAX)
        return false;
    evaluation->stack[evaluation->depth++] = value;
    return true;
}

static bool push_constant(struct evaluation *evaluation, uint64_t value)
{
    return push(evaluation, (struct symbolic){.offset = (int64_t)value});
}

static bool is_constant(const struct symbolic *value)
{
    return !value->has_register && !value->scale;
}

static bool push_register(struct evaluation *evaluation, uint64_t number, int64_t offset)
{
    if (number == architecture.pc)
        return push_constant(evaluation, evaluation->address + (uint64_t)offset);
    return number < REGISTERS_MAX &&
           push(evaluation, (struct symbolic){.has_register = true,
                                              .register_number = (uint8_t)number,
                                              .offset = offset});
}

static bool dereference(struct evaluation *evaluation)
{
    if (!evaluation->depth)
        return false;
    struct symbolic *top = &evaluation->stack[evaluation->depth - 1];
    if (!top->has_register || top->is_in_memory)
        return false;
    top->is_in_memory = true;
    return true;
}

static bool add(struct evaluation *evaluation, uint64_t constant)
{
    if (!evaluation->depth)
        return false;
    struct symbolic *top = &evaluation->stack[evaluation->depth - 1];
    int64_t *offset = top->is_in_memory ? &top->then_offset : &top->offset;
    *offset = (int64_t)((uint64_t)*offset + constant);
    return true;
}

/* Multiplies a register. */
static bool scale(struct symbolic *value, uint64_t factor)
{
    if (!value->has_register || value->scale || value->is_in_memory || !factor ||
        factor != (uint8_t)factor)
        return false;
    *value = (struct symbolic){.index_number = value->register_number,
                               .scale = (uint8_t)factor,
                               .offset = (int64_t)((uint64_t)value->offset * factor)};
    return true;
}

/* Adds an index to a register, as OpenSSL's bn_mul_mont needs. */
static bool add_index(struct symbolic *value, const struct symbolic *index)
{
    if (value->scale || value->is_in_memory || index->has_register)
        return false;
    value->index_number = index->index_number;
    value->scale = index->scale;
    value->offset = (int64_t)((uint64_t)value->offset + (uint64_t)index->offset);
    return true;
}

/* Combines two values. The upper one must be a constant; so must the lower one, except in a sum, a
 * difference, and a product. */
static bool combine(struct evaluation *evaluation, uint8_t operation)
{
    if (evaluation->depth < 2)
        return false;
    struct symbolic upper = evaluation->stack[evaluation->depth - 1];
    struct symbolic *lower = &evaluation->stack[evaluation->depth - 2];
    bool may_swap = operation == DW_OP_plus || operation == DW_OP_mul;
    if (may_swap && !lower->has_register && !is_constant(&upper)) {
        struct symbolic other = *lower;
        *lower = upper;
        upper = other;
    }
    evaluation->depth--;
    if (!is_constant(&upper))
        return operation == DW_OP_plus && add_index(lower, &upper);
    uint64_t constant = (uint64_t)upper.offset;
    if (operation == DW_OP_plus)
        return add(evaluation, constant);
    if (operation == DW_OP_minus)
        return add(evaluation, 0 - constant);
    if (operation == DW_OP_mul)
        return scale(lower, constant);
    if (!is_constant(lower))
        return false;
    switch (operation) {
    case DW_OP_and:
        lower->offset &= upper.offset;
        return true;
    case DW_OP_ge:
        lower->offset = lower->offset >= upper.offset;
        return true;
    case DW_OP_shl:
        lower->offset = constant < 64 ? (int64_t)((uint64_t)lower->offset << constant) : 0;
        return true;
    default:
        return false;
    }
}

static bool run_constant(struct evaluation *evaluation, uint8_t operation, struct bytes *code)
{
    switch (operation) {
    case DW_OP_const1u:
        return push_constant(evaluation, bytes_unsigned(code, 1));
    case DW_OP_const1s:
        return push_constant(evaluation, (uint64_t)bytes_signed(code, 1));
    case DW_OP_const2u:
        return push_constant(evaluation, bytes_unsigned(code, 2));
    case DW_OP_const2s:
        return push_constant(evaluation, (uint64_t)bytes_signed(code, 2));
    case DW_OP_const4u:
        return push_constant(evaluation, bytes_unsigned(code, 4));
    case DW_OP_const4s:
        return push_constant(evaluation, (uint64_t)bytes_signed(code, 4));
    case DW_OP_constu:
        return push_constant(evaluation, bytes_uleb(code));
    case DW_OP_consts:
        return push_constant(evaluation, (uint64_t)bytes_sleb(code));
    default:
        return false;
    }
}

static bool run_operation(struct evaluation *evaluation, uint8_t operation, struct bytes *code)
{
    uint64_t number;
    if (operation >= DW_OP_lit0 && operation <= DW_OP_lit31)
        return push_constant(evaluation, operation - DW_OP_lit0);
    if (operation >= DW_OP_breg0 && operation <= DW_OP_breg31)
        return push_register(evaluation, operation - DW_OP_breg0, bytes_sleb(code));
    switch (operation) {
    case DW_OP_nop:
        return true;
    case DW_OP_bregx:
        number = bytes_uleb(code);
        return push_register(evaluation, number, bytes_sleb(code));
    case DW_OP_deref:
        return dereference(evaluation);
    case DW_OP_plus_uconst:
        return add(evaluation, bytes_uleb(code));
    case DW_OP_plus:
    case DW_OP_minus:
    case DW_OP_mul:
    case DW_OP_and:
    case DW_OP_ge:
    case DW_OP_shl:
        return combine(evaluation, operation);
    default:
        return run_constant(evaluation, operation, code);
    }
}

/* Evaluates DWARF operations (DWARF 5, 2.5). Returns false if the value has no form that a rule can
 * express. Entries of the PLT ask for the low bits of the program counter, which are the same in
 * every process, because code is mapped by whole pages. */
static bool evaluate(struct bytes code, uint64_t address, struct symbolic *ret_value)
{
    struct evaluation evaluation = {.address = address};
    while (bytes_left(&code)) {
        uint8_t operation = (uint8_t)bytes_unsigned(&code, 1);
        if (!run_operation(&evaluation, operation, &code) || code.failed)
            return false;
    }
    if (evaluation.depth != 1 || !evaluation.stack[0].has_register)
        return false;
    *ret_value = evaluation.stack[0];
    return true;
}

static bool set_place(struct rule_place *place, uint64_t register_number, int64_t offset,
                      bool is_in_memory)
{
    if (offset != (int32_t)offset || register_number > RULE_CFA)
        return false;
    *place = (struct rule_place){(uint8_t)register_number, is_in_memory, (int32_t)offset};
    return true;
}

static bool set_cfa(struct rule *rule, const struct cfi_row *row, uint64_t address)
{
    struct symbolic value;
    if (!row->cfa_is_expression)
        return row->cfa_register < REGISTERS_MAX &&
               set_place(&rule->cfa, row->cfa_register, row->cfa_offset, false);
    if (!evaluate(row->cfa_expression, address, &value) ||
        value.then_offset != (int32_t)value.then_offset)
        return false;
    rule->cfa_offset = (int32_t)value.then_offset;
    rule->cfa_index = value.index_number;
    rule->cfa_scale = value.scale;
    return set_place(&rule->cfa, value.register_number, value.offset, value.is_in_memory);
}

/* Sets where the caller's value of a register is. */
static bool set_register(struct rule_place *place, const struct cfi_register *row, unsigned number,
                         uint64_t address)
{
    struct symbolic value;
    switch (row->kind) {
    case CFI_SAME:
        return set_place(place, number, 0, false);
    case CFI_IN_REGISTER:
        return (uint64_t)row->offset < REGISTERS_MAX &&
               set_place(place, (uint64_t)row->offset, 0, false);
    case CFI_AT_OFFSET:
        return set_place(place, RULE_CFA, row->offset, true);
    case CFI_IS_OFFSET:
        return set_place(place, RULE_CFA, row->offset, false);
    case CFI_AT_EXPRESSION:
        /* The expression begins with the CFA on its stack, which no compiler's expression uses; one
         * that did would leave two values. */
        return evaluate(row->expression, address, &value) && !value.is_in_memory && !value.scale &&
               set_place(place, value.register_number, value.offset, true);
    case CFI_UNDEFINED:
    case CFI_IS_EXPRESSION:
        break;
    }
    return false;
}

/* Precision matters little here: few frames are found by it. */
static int32_t base_pointer_offset(const struct cfi_register *row)
{
    if (row->kind == CFI_SAME)
        return RULE_BASE_POINTER_SAME;
    return row->kind == CFI_AT_OFFSET && row->offset == (int32_t)row->offset && row->offset % 8 == 0
               ? (int32_t)row->offset
               : RULE_BASE_POINTER_LOST;
}

/* All registers that the row leaves alone, except the one in which a call leaves its return
 * address. */
static uint32_t kept_registers(const struct cfi_row *row, unsigned return_register)
{
    uint32_t kept = 0;
    for (unsigned i = 0; i < 32; i++)
        kept |= (uint32_t)(row->registers[i].kind == CFI_SAME && i != return_register) << i;
    return kept;
}

/* Whether the register is read from where the CFA is. */
static bool is_read_as_cfa(const struct rule *rule, const struct cfi_register *row, unsigned number,
                           uint64_t address)
{
    const struct rule_place *cfa = &rule->cfa;
    struct rule_place place;
    return set_register(&place, row, number, address) &&
           place.register_number == cfa->register_number && place.offset == cfa->offset &&
           place.is_in_memory == cfa->is_in_memory && !rule->cfa_offset && !rule->cfa_scale;
}

static struct rule rule_as_said(const struct cfi_entry *entry, uint64_t address)
{
    /* OCaml 5 marks its functions that call C from another stack as signal frames. */
    struct rule rule = {.kind = RULE_CALLER,
                        .caller_is_exact = entry->is_signal_frame,
                        .may_leave_stack = entry->is_signal_frame};
    const struct rule unknown = {.kind = RULE_UNKNOWN_FRAME};
    struct cfi_row row;
    if (!cfi_find_row(entry, address, &row) || entry->return_register >= REGISTERS_MAX)
        return unknown;
    unsigned return_register = (unsigned)entry->return_register;
    const struct cfi_register *return_address = &row.registers[return_register];
    if (return_address->kind == CFI_UNDEFINED)
        return (struct rule){.kind = RULE_FIRST_FRAME};
    /* A frame's stack pointer is its CFA. glibc's longjmp and setcontext say otherwise: their
     * caller is what they jump to, and its registers are where they load them from. */
    const struct cfi_register *stack_pointer = &row.registers[architecture.sp];
    bool is_cfa = stack_pointer->kind == CFI_SAME ||
                  (stack_pointer->kind == CFI_IS_OFFSET && stack_pointer->offset == 0);
    if (!is_cfa && !entry->is_signal_frame)
        return (struct rule){.kind = RULE_ON_THE_MOVE};
    /* If the caller is at this very address, nothing was said of it. */
    if (return_address->kind == CFI_SAME && return_register == architecture.pc)
        return unknown;
    if (!set_cfa(&rule, &row, address) ||
        (!is_cfa && !is_read_as_cfa(&rule, stack_pointer, architecture.sp, address)) ||
        !set_register(&rule.return_address, return_address, return_register, address))
        return unknown;
    rule.kept = kept_registers(&row, return_register);
    rule.base_pointer_offset = base_pointer_offset(&row.registers[architecture.base_pointer]);
    const struct cfi_register *frame_pointer = &row.registers[architecture.frame_pointer];
    if (frame_pointer->kind == CFI_UNDEFINED)
        return rule;
    if (!set_register(&rule.frame_pointer, frame_pointer, architecture.frame_pointer, address))
        return unknown;
    rule.has_frame_pointer = true;
    return rule;
}

/* More than any stub pushes. */
#define SAVED_BEFORE_MAX 256

static bool is_saved_above(const struct rule *rule)
{
    const struct rule_place *saved = &rule->return_address;
    bool is_by_sp = rule->cfa.register_number == architecture.sp && !rule->cfa.is_in_memory;
    return rule->kind == RULE_CALLER && is_by_sp && saved->is_in_memory &&
           saved->register_number == RULE_CFA && saved->offset >= 0 &&
           saved->offset <= SAVED_BEFORE_MAX;
}

static void lower(int32_t *offset, int32_t bytes)
{
    *offset = *offset < INT32_MIN + bytes ? INT32_MIN : *offset - bytes;
}

/* Moves the CFA to just above the return address. */
static void raise_cfa(struct rule *rule)
{
    int32_t bytes = rule->return_address.offset + (int32_t)sizeof(uint64_t);
    if (rule->cfa_offset > INT32_MAX - bytes)
        return;
    rule->cfa_offset += bytes;
    lower(&rule->return_address.offset, bytes);
    if (rule->frame_pointer.is_in_memory && rule->frame_pointer.register_number == RULE_CFA)
        lower(&rule->frame_pointer.offset, bytes);
    if (rule->base_pointer_offset != RULE_BASE_POINTER_SAME &&
        rule->base_pointer_offset != RULE_BASE_POINTER_LOST)
        lower(&rule->base_pointer_offset, bytes);
}

/* A return address that is saved above the CFA means that this CFA is too low. glibc's
 * _dl_runtime_resolve on aarch64 has such unwind information from its second instruction on, as the
 * stub that jumps to it has already pushed two words (sysdeps/aarch64/dl-trampoline.S). */
static struct rule rule_for_link(const struct cfi_entry *entry, uint64_t address)
{
    const struct rule rule = rule_as_said(entry, address);
    struct rule fit = rule;
    if (address == entry->start && rule.kind == RULE_CALLER && !rule.return_address.is_in_memory)
        fit = rule_as_said(entry, address + 4);
    if (!is_saved_above(&fit))
        return rule;
    raise_cfa(&fit);
    return fit;
}

struct rule rule_make(const struct cfi_entry *entry, uint64_t address)
{
    bool has_link = architecture.link != REGISTERS_MAX;
    return has_link && !entry->is_signal_frame ? rule_for_link(entry, address)
                                               : rule_as_said(entry, address);
}
