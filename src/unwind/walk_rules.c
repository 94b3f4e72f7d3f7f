/* Unwinding by rules: goes from frame to frame, each step by the rule of the frame's code. */
#include "unwind/unwind.h"
#include "base/array.h"
#include "unwind/code/calls.h"
#include "unwind/code_address.h"
#include "unwind/frame.h"

#include <errno.h>

/* Adds a frame. Returns 0 or -ENOMEM. */
static int push(struct stack *stack, uint64_t address)
{
    return array_append(&stack->addresses, &stack->depth, &stack->capacity, address);
}

static const struct rule no_rule = {.kind = RULE_NONE}, first_frame = {.kind = RULE_FIRST_FRAME};

/* Whether the rule is of Go's code, and needs a link register that is not known. */
static bool lacks_link(const struct frame *frame, const struct rule *rule)
{
    const struct rule_place *place = &rule->return_address;
    return rule->has_caller && !place->is_in_memory &&
           place->register_number == architecture.link && frame->registers &&
           !registers_has(frame->registers, architecture.link);
}

static enum step take_step(struct walk *walk, struct frame *frame, const struct mapping *mapping,
                           const struct rule *rule, struct registers *interrupted)
{
    if (rule->is_at_return && frame->is_exact && frame_step_by_return(walk, frame))
        return STEP_TAKEN;
    switch (rule->kind) {
    case RULE_NEW_STACK:
    case RULE_LEFT_STACK:
        return frame_step_to_left_stack(walk, frame, mapping, rule);
    case RULE_RUNS_C:
        return frame_step_from_c(walk, frame, mapping, rule);
    case RULE_CALLER:
        if (rule->is_from_code && rule->may_leave_stack)
            return frame_step_to_caller_of(walk, frame, mapping, rule);
        if (lacks_link(frame, rule))
            return frame_step_without_link(walk, frame, mapping);
        return rule->is_from_code ? frame_step_by_code(walk, frame, rule)
                                  : frame_step_to_caller(walk, frame, rule);
    case RULE_NONE:
        return frame_step_by_pointer(walk, frame);
    case RULE_SIGNAL_FRAME:
        return frame_step_to_interrupted(walk, frame, interrupted);
    case RULE_FIRST_FRAME:
        return STEP_WHOLE;
    case RULE_UNKNOWN_FRAME:
        return frame_step_by_nothing(walk, frame);
    case RULE_ON_THE_MOVE:
        return frame_cut(walk, STACK_CUT_NO_UNWIND_INFO);
    default:
        return frame_cut(walk, STACK_CUT_UNREAD);
    }
}

/* glibc ends clone's call frame information before the system call, because it would not hold in
 * the new thread. In the thread that called clone it still holds. */
static const struct rule *rule_behind_system_call(const struct walk *walk,
                                                  const struct mapping *mapping, uint64_t address)
{
    uint8_t before[SYSTEM_CALL_BYTES_MAX] = {0};
    module_read(mapping->module, address - sizeof before, before, sizeof before);
    unsigned call_bytes = system_call_before(before);
    return call_bytes ? rule_tables_find(walk->tables, mapping->module, address - call_bytes - 1)
                      : &no_rule;
}

/* Whether the frame is that of a thread which has not run since it was created. */
static bool is_new_thread(const struct frame *frame, const struct mapping *mapping)
{
    uint8_t before[CLONE_BYTES];
    if (!frame->registers)
        return false;
    return frame->registers->is_new_thread ||
           (frame->registers->may_be_new_thread && mapping->has_bias &&
            module_read(mapping->module, frame->pc - mapping->bias - sizeof before, before,
                        sizeof before) &&
            system_call_is_clone(before));
}

/* The rule of a frame that no rule says anything about, or that did not make the call which returns
 * to it and so is looked up at its own address: the trampoline that a signal handler returns to, or
 * the start of a function, which makecontext(3) has the first function of a stack return to. */
static const struct rule *rule_of_uncalled(const struct walk *walk, const struct frame *frame,
                                           const struct mapping *mapping, bool is_certain)
{
    if (!mapping->has_bias)
        return &no_rule;
    uint64_t address = frame->pc - mapping->bias;
    if (frame->is_exact)
        return rule_behind_system_call(walk, mapping, address);
    const struct rule *rule = rule_tables_find(walk->tables, mapping->module, address);
    if (!rule || rule->kind == RULE_SIGNAL_FRAME || is_certain)
        return rule;
    /* Any pointer to a function might be where a return address is looked for. */
    uint8_t code[CONTEXT_END_BYTES];
    bool is_start = rule_tables_function(walk->tables, mapping->module, address) == address;
    return is_start && !frame_follows_call(walk, frame->pc) &&
                   module_read(mapping->module, address, code, sizeof code) &&
                   call_is_context_end(code)
               ? &first_frame
               : &no_rule;
}

/* A signal trampoline may directly follow a function whose code then says what the rule of the byte
 * before it is. NULL if memory is short. */
static const struct rule *rule_or_trampoline(const struct walk *walk, const struct frame *frame,
                                             const struct mapping *mapping, const struct rule *rule)
{
    bool is_guess = rule->is_from_code || rule->kind == RULE_UNKNOWN_FRAME;
    if (frame->is_exact || !is_guess || !mapping->has_bias || frame_follows_call(walk, frame->pc))
        return rule;
    uint64_t address = frame->pc - mapping->bias;
    const struct rule *own = rule_tables_find(walk->tables, mapping->module, address);
    if (!own || own->kind == RULE_SIGNAL_FRAME)
        return own;
    /* That look-up may have moved the table, so `rule` may no longer be valid. */
    return rule_tables_find(walk->tables, mapping->module, lookup_address(address, false));
}

/* The rule of a frame's code; *ret_address is the address that it was looked up by. NULL if memory
 * is short. */
static const struct rule *rule_of(const struct walk *walk, const struct frame *frame,
                                  const struct mapping *mapping, uint64_t *ret_address)
{
    const struct rule *rule = NULL;
    *ret_address = lookup_address(frame->pc, frame->is_exact);
    if (mapping->has_bias) {
        rule = rule_tables_find(walk->tables, mapping->module, *ret_address - mapping->bias);
        if (!rule)
            return NULL;
    } else {
        rule = rule_tables_find_generated(walk->tables, walk->space->id, *ret_address);
        if (!rule && !walk->hints->unlearnt_address)
            walk->hints->unlearnt_address = *ret_address;
    }
    /* What the code says holds in the thread that created this one. */
    bool is_untold =
        !rule || rule->kind == RULE_NONE || rule->kind == RULE_ON_THE_MOVE || rule->is_from_code;
    if (is_untold && is_new_thread(frame, mapping))
        return &first_frame;
    bool was_not_called = false;
    bool is_certain = rule && rule->is_no_call && !frame->is_exact;
    if (!rule || rule->kind == RULE_NONE || is_certain) {
        rule = rule_of_uncalled(walk, frame, mapping, is_certain);
        was_not_called = rule && rule->kind != RULE_NONE;
    } else {
        rule = rule_or_trampoline(walk, frame, mapping, rule);
    }
    if (rule && (rule->kind == RULE_SIGNAL_FRAME || was_not_called))
        *ret_address = frame->pc;
    return rule;
}

static void note_missing_frame_pointer(const struct walk *walk, const struct frame *frame,
                                       const struct mapping *mapping, uint64_t address)
{
    if (!mapping->has_bias)
        return;
    uint64_t function =
        rule_tables_function(walk->tables, mapping->module, address - mapping->bias);
    walk->hints->function = function ? function + mapping->bias : 0;
    walk->hints->function_address = address;
    walk->hints->function_sp = frame->sp;
}

int walk_by_rules(struct walk *walk)
{
    struct frame frame = frame_of(&walk->snapshot->registers);
    struct registers interrupted;
    struct stack *stack = walk->stack;
    if (!registers_has(&walk->snapshot->registers, architecture.sp) ||
        !registers_has(&walk->snapshot->registers, architecture.pc)) {
        stack->cut = STACK_CUT_NO_UNWIND_INFO;
        return push(stack, frame.pc);
    }
    for (;;) {
        uint64_t address;
        /* A caller at 0 is none: the first frame of a thread may be marked so. */
        if (!frame.pc && !frame.is_exact)
            return 0;
        const struct mapping *mapping =
            space_find(walk->space, lookup_address(frame.pc, frame.is_exact));
        if (!mapping && !frame.is_exact) {
            /* A caller outside all code is none. */
            walk->hints->has_unknown_address = true;
            stack->cut = STACK_CUT_NO_UNWIND_INFO;
            return 0;
        }
        if (stack->depth == walk->max_depth) {
            stack->cut = STACK_CUT_AT_MAX_DEPTH;
            return 0;
        }
        if (!mapping) {
            if (push(stack, frame.pc))
                return -ENOMEM;
            if (frame_step_from_no_code(walk, &frame) != STEP_TAKEN)
                return 0;
            continue;
        }
        const struct rule *rule = rule_of(walk, &frame, mapping, &address);
        if (!rule || push(stack, address))
            return -ENOMEM;
        switch (take_step(walk, &frame, mapping, rule, &interrupted)) {
        case STEP_TAKEN:
            break;
        case STEP_CUT:
            if (stack->cut == STACK_CUT_NO_REGISTER && !walk->misses_other_register)
                note_missing_frame_pointer(walk, &frame, mapping, address);
            return 0;
        case STEP_WHOLE:
            return 0;
        }
    }
}

int unwind_snapshot(struct rule_tables *tables, struct space *space,
                    const struct snapshot *snapshot, size_t max_depth, struct stack *stack,
                    struct unwind_hints *ret_hints)
{
    struct walk walk = {.tables = tables,
                        .space = space,
                        .snapshot = snapshot,
                        .max_depth = max_depth,
                        .stack = stack,
                        .hints = ret_hints,
                        .code_mask = registers_code_mask()};
    stack->depth = 0;
    stack->cut = STACK_WHOLE;
    *ret_hints = (struct unwind_hints){0};
    return walk_by_rules(&walk);
}
