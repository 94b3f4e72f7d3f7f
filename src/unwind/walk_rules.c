/* Unwinding by rules. */
#include "unwind/calls.h"
#include "unwind/signal_frame.h"
#include "unwind/walk.h"

#include <errno.h>

/* A frame on the way: of its registers only stack pointer, program counter and frame pointer are
 * followed; the others are known in the first one, and where a signal came. */
struct frame {
    struct registers registers;
    bool is_exact; /* the program counter is where it is, not where it will return to */
};

enum step {
    STEP_TAKEN,
    STEP_WHOLE,   /* there is no caller */
    STEP_CUT,     /* stack->cut says why */
    STEP_COMPLEX, /* rules don't do */
};

static uint64_t *value_of(struct frame *frame, unsigned number)
{
    return &frame->registers.values[number];
}

static enum step cut(struct walk *walk, enum stack_cut why)
{
    walk->stack->cut = why;
    return STEP_CUT;
}

static void set_caller(struct frame *frame, uint64_t pc, uint64_t sp)
{
    frame->registers.values[architecture.pc] = pc;
    frame->registers.values[architecture.sp] = sp;
    frame->registers.known = 1ull << architecture.pc | 1ull << architecture.sp;
    frame->is_exact = false;
}

static void set_frame_pointer(struct frame *frame, uint64_t value)
{
    frame->registers.values[architecture.frame_pointer] = value;
    frame->registers.known |= 1ull << architecture.frame_pointer;
}

/* The value at a rule's place. */
static enum step read_place(struct walk *walk, struct frame *frame, const struct rule_place *place,
                            uint64_t cfa, uint64_t *ret_value)
{
    uint64_t base = cfa;
    if (place->register_number != RULE_CFA) {
        if (!registers_has(&frame->registers, place->register_number)) {
            return place->register_number == architecture.frame_pointer
                       ? cut(walk, STACK_CUT_NO_REGISTER)
                       : STEP_COMPLEX;
        }
        base = frame->registers.values[place->register_number];
    }
    uint64_t value = base + (uint64_t)(int64_t)place->offset;
    if (place->is_in_memory && !walk_read_stack(walk, value, &value))
        return cut(walk, STACK_CUT_UNREADABLE);
    *ret_value = value;
    return STEP_TAKEN;
}

static enum step step_to_caller(struct walk *walk, struct frame *frame, const struct rule *rule)
{
    uint64_t sp = *value_of(frame, architecture.sp), cfa = 0, pc, frame_pointer = 0;
    enum step step = read_place(walk, frame, &rule->cfa, 0, &cfa);
    if (step != STEP_TAKEN)
        return step;
    cfa += (uint64_t)(int64_t)rule->cfa_offset;
    /* The stack only ever grows towards the first frame. A frame without room on it is one that has
     * its return address in a register. */
    if (cfa < sp || (cfa == sp && rule->return_address.is_in_memory))
        return cut(walk, STACK_CUT_NO_UNWIND_INFO);
    step = read_place(walk, frame, &rule->return_address, cfa, &pc);
    if (step != STEP_TAKEN)
        return step;
    bool has_frame_pointer = rule->has_frame_pointer &&
                             (rule->frame_pointer.register_number != architecture.frame_pointer ||
                              registers_has(&frame->registers, architecture.frame_pointer));
    if (has_frame_pointer) {
        step = read_place(walk, frame, &rule->frame_pointer, cfa, &frame_pointer);
        if (step != STEP_TAKEN)
            return step;
    }
    set_caller(frame, pc, cfa);
    if (has_frame_pointer)
        set_frame_pointer(frame, frame_pointer);
    return STEP_TAKEN;
}

/* From the kernel's trampoline to what the signal interrupted: all its registers are known. */
static enum step step_to_interrupted(struct walk *walk, struct frame *frame)
{
    uint64_t sp = *value_of(frame, architecture.sp);
    struct registers registers = {.known = (1ull << architecture.register_count) - 1};
    for (unsigned i = 0; i < architecture.register_count; i++) {
        if (!walk_read_stack(walk, sp + signal_frame_offsets[i], &registers.values[i]))
            return cut(walk, STACK_CUT_UNREADABLE);
    }
    frame->registers = registers;
    frame->is_exact = true;
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

/* In code without call frame information: the frame pointer points to where the caller's was saved,
 * and the return address is next to it. It is believed where all of it fits. */
static enum step step_by_frame_pointer(struct walk *walk, struct frame *frame)
{
    uint64_t sp = *value_of(frame, architecture.sp), saved, pc;
    if (!registers_has(&frame->registers, architecture.frame_pointer))
        return cut(walk, STACK_CUT_NO_REGISTER);
    uint64_t frame_pointer = *value_of(frame, architecture.frame_pointer);
    /* The psABIs have the first frame marked so. */
    if (!frame_pointer)
        return STEP_WHOLE;
    if (frame_pointer < sp || frame_pointer % sizeof saved)
        return cut(walk, STACK_CUT_NO_UNWIND_INFO);
    if (!walk_read_stack(walk, frame_pointer, &saved) ||
        !walk_read_stack(walk, frame_pointer + sizeof saved, &pc))
        return cut(walk, STACK_CUT_UNREADABLE);
    if (pc && !follows_call(walk, pc))
        return cut(walk, STACK_CUT_NO_UNWIND_INFO);
    set_caller(frame, pc, frame_pointer + 2 * sizeof saved);
    set_frame_pointer(frame, saved);
    return STEP_TAKEN;
}

static enum step take_step(struct walk *walk, struct frame *frame, const struct rule *rule)
{
    switch (rule->kind) {
    case RULE_CALLER:
        return step_to_caller(walk, frame, rule);
    case RULE_NONE:
        return step_by_frame_pointer(walk, frame);
    case RULE_SIGNAL_FRAME:
        return step_to_interrupted(walk, frame);
    case RULE_FIRST_FRAME:
        return STEP_WHOLE;
    default:
        return STEP_COMPLEX;
    }
}

/* Who the frame's code belongs to is looked up where it is; a caller, at its call: that may be its
 * function's last instruction, and the address behind it another function's. Only the trampoline
 * that a signal handler returns to was not called. */
static const struct rule *rule_of(struct walk *walk, struct rule_tables *tables,
                                  const struct frame *frame, const struct mapping *mapping,
                                  uint64_t *ret_address)
{
    static const struct rule none = {.kind = RULE_NONE};
    uint64_t pc = registers_pc(&frame->registers);
    const struct rule *rule = &none;
    (void)walk;
    *ret_address = frame->is_exact ? pc : pc - 1;
    if (mapping->has_bias)
        rule = rule_tables_find(tables, mapping->module, *ret_address - mapping->bias);
    if (rule && rule->kind == RULE_NONE && !frame->is_exact && mapping->has_bias) {
        const struct rule *at_pc = rule_tables_find(tables, mapping->module, pc - mapping->bias);
        rule = !at_pc || at_pc->kind == RULE_SIGNAL_FRAME ? at_pc : &none;
    }
    if (rule && rule->kind == RULE_SIGNAL_FRAME)
        *ret_address = pc;
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
    walk->hints->function_sp = registers_sp(&frame->registers);
}

int walk_by_rules(struct walk *walk, struct rule_tables *tables)
{
    struct frame frame = {.registers = walk->snapshot->registers, .is_exact = true};
    struct stack *stack = walk->stack;
    for (;;) {
        uint64_t pc = registers_pc(&frame.registers), address;
        /* A caller at 0 is none: so the first frame of a thread may be marked. */
        if (!pc && stack->depth)
            return 0;
        const struct mapping *mapping = space_find(walk->space, pc);
        if (!mapping) {
            walk->hints->has_unknown_address = true;
            stack->cut = STACK_CUT_NO_UNWIND_INFO;
            /* The leaf is where the thread is, known or not; a caller in no code is no caller. */
            return stack->depth ? 0 : walk_push(walk, pc);
        }
        if (stack->depth == walk->max_depth) {
            stack->cut = STACK_CUT_AT_MAX_DEPTH;
            return 0;
        }
        const struct rule *rule = rule_of(walk, tables, &frame, mapping, &address);
        if (!rule || walk_push(walk, address))
            return -ENOMEM;
        switch (take_step(walk, &frame, rule)) {
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
