/* Unwinding by rules. */
#include "unwind/calls.h"
#include "unwind/left_stack.h"
#include "unwind/signal_frame.h"
#include "unwind/walk.h"

#include <errno.h>

#define ENTRY_BYTES 64 /* of code, from a program's entry to the call that does not return */

/* More stacks than a thread uses at a time; damaged ones may lead round in a circle. */
#define STACKS_LEFT_MAX 8

/* A frame on the way. The other registers are known only in the first one, and where a signal came.
 */
struct frame {
    uint64_t pc, sp, frame_pointer;
    bool has_frame_pointer;
    /* It is seldom asked for, and so is read only then: where it was saved, if that is not 0; its
     * value, if that is known. */
    bool has_base_pointer;
    uint64_t base_pointer_at, base_pointer;
    bool is_exact;        /* the program counter is where it is, not where it will return to */
    unsigned stacks_left; /* how often the way went on to another stack */
    const struct registers *registers; /* NULL: only the above are known */
};

enum step {
    STEP_TAKEN,
    STEP_WHOLE,   /* there is no caller */
    STEP_CUT,     /* stack->cut says why */
    STEP_COMPLEX, /* rules don't do */
};

static struct frame frame_of(const struct registers *registers)
{
    return (struct frame){
        .pc = registers_pc(registers),
        .sp = registers_sp(registers),
        .frame_pointer = registers->values[architecture.frame_pointer],
        .has_frame_pointer = registers_has(registers, architecture.frame_pointer),
        .has_base_pointer = registers_has(registers, architecture.base_pointer),
        .base_pointer = registers->values[architecture.base_pointer],
        .is_exact = true,
        .registers = registers,
    };
}

static enum step cut(struct walk *walk, enum stack_cut why)
{
    walk->stack->cut = why;
    return STEP_CUT;
}

static enum step read_base_pointer(struct walk *walk, const struct frame *frame,
                                   uint64_t *ret_value)
{
    *ret_value = frame->base_pointer;
    if (frame->base_pointer_at && !walk_read_stack(walk, frame->base_pointer_at, ret_value))
        return cut(walk, STACK_CUT_UNREADABLE);
    return frame->base_pointer_at || frame->has_base_pointer ? STEP_TAKEN : STEP_COMPLEX;
}

static enum step read_register(struct walk *walk, const struct frame *frame, unsigned number,
                               uint64_t *ret_value)
{
    if (number == architecture.sp) {
        *ret_value = frame->sp;
    } else if (number == architecture.frame_pointer) {
        if (!frame->has_frame_pointer)
            return cut(walk, STACK_CUT_NO_REGISTER);
        *ret_value = frame->frame_pointer;
    } else if (number == architecture.base_pointer) {
        return read_base_pointer(walk, frame, ret_value);
    } else {
        if (!frame->registers || !registers_has(frame->registers, number))
            return STEP_COMPLEX;
        *ret_value = frame->registers->values[number];
    }
    return STEP_TAKEN;
}

/* The value at a rule's place. */
static inline enum step read_place(struct walk *walk, const struct frame *frame,
                                   const struct rule_place *place, uint64_t cfa,
                                   uint64_t *ret_value)
{
    uint64_t value = cfa;
    if (place->register_number != RULE_CFA) {
        enum step step = read_register(walk, frame, place->register_number, &value);
        if (step != STEP_TAKEN)
            return step;
    }
    value += (uint64_t)(int64_t)place->offset;
    if (place->is_in_memory && !walk_read_stack(walk, value, &value))
        return cut(walk, STACK_CUT_UNREADABLE);
    *ret_value = value;
    return STEP_TAKEN;
}

/* Finds the caller's frame pointer. Where the frame's own is not known, neither is one that is the
 * same. */
static enum step read_frame_pointer(struct walk *walk, const struct frame *frame,
                                    const struct rule *rule, uint64_t cfa, bool *ret_is_known,
                                    uint64_t *ret_value)
{
    const struct rule_place *place = &rule->frame_pointer;
    bool is_same = place->register_number == architecture.frame_pointer && !place->is_in_memory;
    /* At a function's end the register has been restored, while what says where it was saved stays
     * as it was: a place that is no part of the stack any more. */
    bool is_same_again = !rule->may_leave_stack && place->register_number == RULE_CFA &&
                         place->is_in_memory && cfa + (uint64_t)(int64_t)place->offset < frame->sp;
    bool is_not_saved = rule->may_not_be_saved && frame->has_frame_pointer &&
                        frame->frame_pointer != cfa + (uint64_t)(int64_t)place->offset;
    if (is_same || is_same_again || is_not_saved) {
        *ret_is_known = frame->has_frame_pointer;
        *ret_value = frame->frame_pointer;
        return STEP_TAKEN;
    }
    *ret_is_known = true;
    return read_place(walk, frame, place, cfa, ret_value);
}

/* As with the frame pointer, what was saved below the stack pointer has been restored. */
static void follow_base_pointer(struct frame *frame, const struct rule *rule, uint64_t cfa)
{
    uint64_t at = cfa + (uint64_t)(int64_t)rule->base_pointer_offset;
    if (rule->base_pointer_offset == RULE_BASE_POINTER_SAME)
        return;
    if (rule->base_pointer_offset == RULE_BASE_POINTER_LOST) {
        frame->has_base_pointer = false;
        frame->base_pointer_at = 0;
    } else if (at >= frame->sp) {
        frame->base_pointer_at = at;
    }
}

static void set_frame(struct frame *frame, uint64_t pc, uint64_t sp, bool has_frame_pointer,
                      uint64_t frame_pointer)
{
    frame->pc = pc;
    frame->sp = sp;
    frame->frame_pointer = frame_pointer;
    frame->has_frame_pointer = has_frame_pointer;
    frame->is_exact = false;
    frame->registers = NULL;
}

/* The stack only ever grows towards the first frame, but there may be several. A frame without room
 * on it is one that has its return address in a register. */
static bool may_be_cfa(struct frame *frame, const struct rule *rule, uint64_t cfa)
{
    if (rule->may_leave_stack)
        return frame->stacks_left++ < STACKS_LEFT_MAX;
    return cfa > frame->sp || (cfa == frame->sp && !rule->return_address.is_in_memory);
}

static enum step step_to_caller(struct walk *walk, struct frame *frame, const struct rule *rule)
{
    uint64_t cfa, pc, frame_pointer = 0;
    bool has_frame_pointer = false;
    enum step step = read_place(walk, frame, &rule->cfa, 0, &cfa);
    if (step != STEP_TAKEN)
        return step;
    cfa += (uint64_t)(int64_t)rule->cfa_offset;
    /* It was cleared for the first frame of the other stack. */
    if (rule->may_leave_stack && cfa == (uint64_t)(int64_t)rule->cfa.offset)
        return STEP_WHOLE;
    if (!may_be_cfa(frame, rule, cfa))
        return cut(walk, STACK_CUT_NO_UNWIND_INFO);
    step = read_place(walk, frame, &rule->return_address, cfa, &pc);
    if (step == STEP_TAKEN && rule->has_frame_pointer)
        step = read_frame_pointer(walk, frame, rule, cfa, &has_frame_pointer, &frame_pointer);
    if (step == STEP_TAKEN) {
        follow_base_pointer(frame, rule, cfa);
        set_frame(frame, pc, cfa, has_frame_pointer, frame_pointer);
        frame->is_exact = rule->caller_is_exact;
    }
    return step;
}

/* From the kernel's trampoline to what the signal interrupted: all its registers are known, and go
 * to *interrupted. */
static enum step step_to_interrupted(struct walk *walk, struct frame *frame,
                                     struct registers *interrupted)
{
    interrupted->known = (1ull << architecture.register_count) - 1;
    for (unsigned i = 0; i < architecture.register_count; i++) {
        if (!walk_read_stack(walk, frame->sp + signal_frame_offsets[i], &interrupted->values[i]))
            return cut(walk, STACK_CUT_UNREADABLE);
    }
    *frame = frame_of(interrupted);
    return STEP_TAKEN;
}

/* Whether a frame may return to `address`: into code, behind a call. What no file holds, a JIT's
 * code, can't be looked at. */
static bool follows_call(const struct walk *walk, uint64_t address)
{
    uint8_t before[CALL_BYTES_MAX];
    uint64_t target;
    const struct mapping *mapping = space_find(walk->space, address - 1);
    if (!mapping)
        return false;
    return !mapping->has_bias ||
           !module_read(mapping->module, address - CALL_BYTES_MAX - mapping->bias, before,
                        sizeof before) ||
           call_before(before, address, &target) != CALL_NONE;
}

/* Whether the code there is what the kernel has a signal's handler return to. */
static bool ends_handler(const struct walk *walk, uint64_t address)
{
    uint8_t code[SIGNAL_RETURN_BYTES];
    const struct mapping *mapping = space_find(walk->space, address);
    return mapping && mapping->has_bias &&
           module_read(mapping->module, address - mapping->bias, code, sizeof code) &&
           signal_return_is_at(code);
}

/* Whether a thread may have begun in this function: the program's entry is near, or nothing but the
 * thread's end follows. */
static bool is_first_function(const struct walk *walk, const struct frame *frame)
{
    uint8_t after[THREAD_END_BYTES];
    const struct mapping *mapping = space_find(walk->space, frame->pc);
    if (!mapping || !mapping->has_bias)
        return false;
    uint64_t address = frame->pc - mapping->bias;
    return address - mapping->module->entry_address < ENTRY_BYTES ||
           (module_read(mapping->module, address, after, sizeof after) && call_is_last(after));
}

/* In code without call frame information: the frame pointer points to where the caller's was saved,
 * and the return address is next to it. It is believed where all of it fits. */
static enum step step_by_frame_pointer(struct walk *walk, struct frame *frame)
{
    uint64_t saved, pc;
    /* The psABIs have the first frame marked so; but where it is no frame pointer, but a register
     * as any other, it may well be 0. */
    if ((!frame->has_frame_pointer || !frame->frame_pointer) && is_first_function(walk, frame))
        return STEP_WHOLE;
    if (!frame->has_frame_pointer)
        return cut(walk, STACK_CUT_NO_REGISTER);
    if (frame->frame_pointer < frame->sp || frame->frame_pointer % sizeof saved)
        return cut(walk, STACK_CUT_NO_UNWIND_INFO);
    if (!walk_read_stack(walk, frame->frame_pointer, &saved) ||
        !walk_read_stack(walk, frame->frame_pointer + sizeof saved, &pc))
        return cut(walk, STACK_CUT_UNREADABLE);
    /* Also not where there is 0, which is what most memory holds. */
    if (!follows_call(walk, pc) && !ends_handler(walk, pc))
        return cut(walk, STACK_CUT_NO_UNWIND_INFO);
    set_frame(frame, pc, frame->frame_pointer + 2 * sizeof saved, true, saved);
    frame->has_base_pointer = false;
    frame->base_pointer_at = 0;
    return STEP_TAKEN;
}

/* What was read from the code is believed where it leads behind a call, or out of a handler. */
static enum step step_by_code(struct walk *walk, struct frame *frame, const struct rule *rule)
{
    struct frame caller = *frame;
    if (step_to_caller(walk, &caller, rule) == STEP_TAKEN &&
        (follows_call(walk, caller.pc) || ends_handler(walk, caller.pc))) {
        *frame = caller;
        return STEP_TAKEN;
    }
    /* Not copied, or not yet. */
    if (walk->stack->cut == STACK_CUT_UNREADABLE)
        return STEP_CUT;
    walk->stack->cut = STACK_WHOLE;
    return step_by_frame_pointer(walk, frame);
}

/* The code jumped, or called, to where there is none: a signal handler finds it there (a null
 * pointer was called), and the caller's address is still the last that was pushed. */
static enum step step_from_no_code(struct walk *walk, struct frame *frame)
{
    uint64_t pc;
    walk->hints->has_unknown_address = true;
    if (!walk_read_stack(walk, frame->sp, &pc) || !follows_call(walk, pc))
        return cut(walk, STACK_CUT_NO_UNWIND_INFO);
    set_frame(frame, pc, frame->sp + sizeof pc, frame->has_frame_pointer, frame->frame_pointer);
    return STEP_TAKEN;
}

/* From a function that is on another stack than its caller, as a rule: but it may still be on its
 * way there, or be back already. */
static enum step step_to_left_stack(struct walk *walk, struct rule_tables *tables,
                                    struct frame *frame, const struct mapping *mapping,
                                    const struct rule *rule)
{
    uint64_t pc, place = frame->sp + (uint64_t)(int64_t)rule->cfa.offset - sizeof pc;
    uint64_t address = frame->pc - !frame->is_exact - mapping->bias;
    struct left_stack left = {
        .function = rule_tables_function(tables, mapping->module, address) + mapping->bias,
        .frame_pointer = frame->frame_pointer,
    };
    if (!frame->has_frame_pointer)
        return cut(walk, STACK_CUT_NO_REGISTER);
    if (!left_stack_fits(walk, tables, &left, place)) {
        if (rule->kind == RULE_NEW_STACK)
            return STEP_WHOLE;
        /* So that it is copied where it is not yet. */
        if (!walk_read_stack(walk, frame->frame_pointer, &pc))
            return cut(walk, STACK_CUT_UNREADABLE);
        if (!left_stack_find(walk, tables, &left, &place) ||
            frame->stacks_left++ == STACKS_LEFT_MAX)
            return cut(walk, STACK_CUT_NO_UNWIND_INFO);
    }
    if (!walk_read_stack(walk, place, &pc))
        return cut(walk, STACK_CUT_UNREADABLE);
    set_frame(frame, pc, place + sizeof pc, true, frame->frame_pointer);
    return STEP_TAKEN;
}

/* Where a function returns, its return address is at the stack pointer, and its caller's registers
 * are restored, whatever is said: hand-written code and compilers forget to say how it is after a
 * function's end has begun. Returns false where that leads nowhere. */
static bool step_by_return(struct walk *walk, struct frame *frame)
{
    uint64_t pc;
    if (!walk_read_stack(walk, frame->sp, &pc) ||
        (!follows_call(walk, pc) && !ends_handler(walk, pc)))
        return false;
    set_frame(frame, pc, frame->sp + sizeof pc, frame->has_frame_pointer, frame->frame_pointer);
    return true;
}

static enum step take_step(struct walk *walk, struct rule_tables *tables, struct frame *frame,
                           const struct mapping *mapping, const struct rule *rule,
                           struct registers *interrupted)
{
    if (rule->is_at_return && frame->is_exact && step_by_return(walk, frame))
        return STEP_TAKEN;
    switch (rule->kind) {
    case RULE_NEW_STACK:
    case RULE_LEFT_STACK:
        return step_to_left_stack(walk, tables, frame, mapping, rule);
    case RULE_CALLER:
        return rule->is_from_code ? step_by_code(walk, frame, rule)
                                  : step_to_caller(walk, frame, rule);
    case RULE_NONE:
        return step_by_frame_pointer(walk, frame);
    case RULE_SIGNAL_FRAME:
        return step_to_interrupted(walk, frame, interrupted);
    case RULE_FIRST_FRAME:
        return STEP_WHOLE;
    case RULE_ON_THE_MOVE:
        return cut(walk, STACK_CUT_NO_UNWIND_INFO);
    default:
        return STEP_COMPLEX;
    }
}

/* A frame that no rule says anything of; or one that did not make the call which returns to it, and
 * so is looked up where it is: the trampoline that a signal handler returns to, or a function from
 * its first instruction, which makecontext(3) has the first one of a stack return to. */
static const struct rule *rule_of_uncalled(const struct walk *walk, struct rule_tables *tables,
                                           const struct frame *frame, const struct mapping *mapping,
                                           bool is_certain)
{
    static const struct rule none = {.kind = RULE_NONE}, first = {.kind = RULE_FIRST_FRAME};
    if (!mapping->has_bias || frame->is_exact)
        return &none;
    uint64_t address = frame->pc - mapping->bias;
    const struct rule *rule = rule_tables_find(tables, mapping->module, address);
    if (!rule || rule->kind == RULE_SIGNAL_FRAME || is_certain)
        return rule;
    bool is_start = rule_tables_function(tables, mapping->module, address) == address;
    return is_start && !follows_call(walk, frame->pc) ? &first : &none;
}

/* The rule of a frame's code. Who that belongs to is looked up where it is; of a caller, at its
 * call: that may be its function's last instruction, and the address behind it another function's.
 * *ret_address is where it was looked up. NULL where memory is short. */
static const struct rule *rule_of(const struct walk *walk, struct rule_tables *tables,
                                  const struct frame *frame, const struct mapping *mapping,
                                  uint64_t *ret_address)
{
    const struct rule *rule = NULL;
    *ret_address = frame->is_exact ? frame->pc : frame->pc - 1;
    if (mapping->has_bias) {
        rule = rule_tables_find(tables, mapping->module, *ret_address - mapping->bias);
        if (!rule)
            return NULL;
    } else {
        rule = rule_tables_find_generated(tables, walk->space->id, *ret_address);
        if (!rule && !walk->hints->unlearnt_address)
            walk->hints->unlearnt_address = *ret_address;
    }
    bool was_not_called = false;
    bool is_certain = rule && rule->is_no_call && !frame->is_exact;
    if (!rule || rule->kind == RULE_NONE || is_certain) {
        rule = rule_of_uncalled(walk, tables, frame, mapping, is_certain);
        was_not_called = rule && rule->kind != RULE_NONE;
    }
    if (rule && (rule->kind == RULE_SIGNAL_FRAME || was_not_called))
        *ret_address = frame->pc;
    return rule;
}

static void note_missing_frame_pointer(const struct walk *walk, struct rule_tables *tables,
                                       const struct frame *frame, const struct mapping *mapping,
                                       uint64_t address)
{
    if (!mapping->has_bias)
        return;
    uint64_t function = rule_tables_function(tables, mapping->module, address - mapping->bias);
    walk->hints->function = function ? function + mapping->bias : 0;
    walk->hints->function_address = address;
    walk->hints->function_sp = frame->sp;
}

int walk_by_rules(struct walk *walk, struct rule_tables *tables)
{
    struct frame frame = frame_of(&walk->snapshot->registers);
    struct registers interrupted;
    struct stack *stack = walk->stack;
    if (!registers_has(&walk->snapshot->registers, architecture.sp) ||
        !registers_has(&walk->snapshot->registers, architecture.pc)) {
        stack->cut = STACK_CUT_NO_UNWIND_INFO;
        return walk_push(walk, frame.pc);
    }
    for (;;) {
        uint64_t address;
        /* A caller at 0 is none: so the first frame of a thread may be marked. */
        if (!frame.pc && !frame.is_exact)
            return 0;
        /* A call may be the last instruction of all that its file has mapped. */
        const struct mapping *mapping =
            space_find(walk->space, frame.is_exact ? frame.pc : frame.pc - 1);
        if (!mapping && !frame.is_exact) {
            /* A caller in no code is no caller. */
            walk->hints->has_unknown_address = true;
            stack->cut = STACK_CUT_NO_UNWIND_INFO;
            return 0;
        }
        if (stack->depth == walk->max_depth) {
            stack->cut = STACK_CUT_AT_MAX_DEPTH;
            return 0;
        }
        if (!mapping) {
            if (walk_push(walk, frame.pc))
                return -ENOMEM;
            if (step_from_no_code(walk, &frame) != STEP_TAKEN)
                return 0;
            continue;
        }
        const struct rule *rule = rule_of(walk, tables, &frame, mapping, &address);
        if (!rule || walk_push(walk, address))
            return -ENOMEM;
        switch (take_step(walk, tables, &frame, mapping, rule, &interrupted)) {
        case STEP_TAKEN:
            break;
        case STEP_COMPLEX:
            return -ENOTSUP;
        case STEP_CUT:
            if (stack->cut == STACK_CUT_NO_REGISTER)
                note_missing_frame_pointer(walk, tables, &frame, mapping, address);
            return 0;
        case STEP_WHOLE:
            return 0;
        }
    }
}
