#include "unwind/code/rule_code.h"
#include "unwind/code/calls.h"
#include "unwind/code/code_frame.h"
#include "unwind/code/code_return.h"
#include "elf/functions.h"

/* On x86-64 the return address is the last word below the CFA (System V psABI, 3.2.2). */
#define RETURN_ADDRESS_BYTES 8

static struct rule rule_of_frame(const struct code_frame *frame)
{
    if (frame->kind == CODE_FRAME_LOST)
        return (struct rule){.kind = RULE_UNKNOWN_FRAME};
    if (frame->kind != CODE_FRAME_BY_SP)
        return (struct rule){.kind = RULE_NONE};
    uint8_t sp = (uint8_t)architecture.sp;
    struct rule rule = {
        .kind = RULE_CALLER,
        .is_from_code = true,
        .has_no_record = architecture.link != REGISTERS_MAX,
        .has_frame_pointer = !frame->has_lost_frame_pointer,
        .cfa = {sp, false, frame->caller_sp},
        .return_address = {sp, true, frame->return_address},
        .frame_pointer = {.register_number = (uint8_t)architecture.frame_pointer},
        .base_pointer_offset = RULE_BASE_POINTER_LOST,
    };
    if (frame->is_in_link)
        rule.return_address = (struct rule_place){.register_number = (uint8_t)architecture.link};
    if (frame->has_saved_frame_pointer)
        rule.frame_pointer = (struct rule_place){sp, true, frame->saved_frame_pointer};
    return rule;
}

static struct code_frame frame_in_stub(struct module *module, uint64_t address)
{
    /* Stubs may be the first or the last mapped bytes. */
    uint8_t code[CODE_STUB_BYTES] = {0};
    uint8_t *here = code + CODE_STUB_BYTES_BEFORE;
    size_t before = CODE_STUB_BYTES_BEFORE, after = CODE_STUB_BYTES - CODE_STUB_BYTES_BEFORE;
    while (after && !module_read(module, address, here, after))
        after -= 8;
    while (before && !module_read(module, address - before, here - before, before))
        before -= 8;
    return code_frame_in_stub(code);
}

static struct code_frame frame_in_function(struct module *module, uint64_t address)
{
    static const struct code_frame unknown = {.kind = CODE_FRAME_UNKNOWN};
    uint8_t code[CODE_FRAME_BYTES_MAX];
    struct function_range function;
    if (!functions_find(module, address, &function))
        return unknown;
    uint64_t at = address - function.start, bytes = function.end - function.start;
    if (bytes > sizeof code)
        bytes = sizeof code;
    if (at >= bytes || !module_read(module, function.start, code, bytes))
        return unknown;
    return code_frame_at(code, bytes, at);
}

static bool is_after_call(struct module *module, uint64_t address)
{
    uint8_t before[CALL_BYTES_MAX];
    uint64_t target;
    return module_read(module, address - sizeof before, before, sizeof before) &&
           call_before(before, address, &target) != CALL_NONE;
}

static bool set_place(struct rule_place *place, const struct code_value *value,
                      const struct code_value *sp)
{
    *place = (struct rule_place){value->register_number, value->kind == CODE_VALUE_MEMORY,
                                 value->offset};
    if (value->kind != CODE_VALUE_FAR)
        return value->kind != CODE_VALUE_UNKNOWN && !value->then_offset;
    /* It is on the stack to which the code switches back. */
    *place = (struct rule_place){RULE_CFA, true,
                                 value->then_offset - sp->then_offset - RETURN_ADDRESS_BYTES};
    return sp->kind == CODE_VALUE_MEMORY && sp->register_number == value->register_number &&
           sp->offset == value->offset;
}

struct rule rule_from_returns(struct module *module, uint64_t address)
{
    struct code_return found;
    /* A frame that made a call is looked up at an address within the call instruction. */
    bool has_called = is_after_call(module, address + 1);
    if (!code_return_find(module, address + has_called, has_called, &found))
        return (struct rule){.kind = RULE_NONE};
    bool is_in_memory = found.sp.kind == CODE_VALUE_MEMORY;
    bool is_on_stack = architecture.link == REGISTERS_MAX;
    struct rule rule = {
        .kind = RULE_CALLER,
        .is_from_code = true,
        .cfa = {found.sp.register_number, is_in_memory, found.sp.offset},
        .cfa_offset = found.sp.then_offset + (is_on_stack ? RETURN_ADDRESS_BYTES : 0),
        .return_address = {RULE_CFA, true, -RETURN_ADDRESS_BYTES},
        .base_pointer_offset = RULE_BASE_POINTER_LOST,
    };
    if (!is_on_stack && !set_place(&rule.return_address, &found.return_address, &found.sp))
        return (struct rule){.kind = RULE_NONE};
    rule.has_frame_pointer = set_place(&rule.frame_pointer, &found.frame_pointer, &found.sp);
    return rule;
}

struct rule rule_from_code(struct module *module, uint64_t address)
{
    struct code_frame frame = frame_in_function(module, address);
    bool is_in_function = frame.kind != CODE_FRAME_UNKNOWN;
    if (!is_in_function)
        frame = frame_in_stub(module, address);
    struct rule rule = rule_of_frame(&frame);
    /* Hand-written code may jump to the symbol of a function with room still on the stack. A return
     * address in memory is then seen to be wrong; one in the link register always follows a call.
     */
    bool may_mislead = is_in_function && architecture.link != REGISTERS_MAX;
    if (frame.kind != CODE_FRAME_UNKNOWN && frame.kind != CODE_FRAME_LOST && !may_mislead)
        return rule;
    struct rule by_returns = rule_from_returns(module, address);
    if (by_returns.kind == RULE_NONE)
        return rule;
    by_returns.has_no_record = may_mislead && (rule.has_no_record || frame.kind == CODE_FRAME_LOST);
    return by_returns;
}

struct rule rule_from_bytes(const uint8_t *code, size_t code_bytes, size_t at)
{
    struct code_frame frame = code_frame_at(code, code_bytes, at);
    return rule_of_frame(&frame);
}
