#include "unwind/frame.h"
#include "unwind/left_stack.h"
#include "unwind/signal_frame.h"

struct frame frame_of(const struct registers *registers)
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

static enum step read_base_pointer(struct walk *walk, const struct frame *frame,
                                   uint64_t *ret_value)
{
    *ret_value = frame->base_pointer;
    if (frame->base_pointer_at && !walk_read_stack(walk, frame->base_pointer_at, ret_value))
        return frame_cut(walk, STACK_CUT_UNREADABLE);
    return frame->base_pointer_at || frame->has_base_pointer ? STEP_TAKEN : STEP_COMPLEX;
}

static enum step read_register(struct walk *walk, const struct frame *frame, unsigned number,
                               uint64_t *ret_value)
{
    if (number == architecture.sp) {
        *ret_value = frame->sp;
    } else if (number == architecture.frame_pointer) {
        if (!frame->has_frame_pointer)
            return frame_cut(walk, STACK_CUT_NO_REGISTER);
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
        return frame_cut(walk, STACK_CUT_UNREADABLE);
    *ret_value = value;
    return STEP_TAKEN;
}

/* Finds the caller's frame pointer. If it is the same as the frame's own and that is unknown, so is
 * this. */
static enum step read_frame_pointer(struct walk *walk, const struct frame *frame,
                                    const struct rule *rule, uint64_t cfa, bool *ret_is_known,
                                    uint64_t *ret_value)
{
    const struct rule_place *place = &rule->frame_pointer;
    bool is_same = place->register_number == architecture.frame_pointer && !place->is_in_memory;
    /* At a function's end the register has been restored, but the rule still has the place where it
     * was saved, which is no longer part of the stack. */
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

void frame_set(struct frame *frame, uint64_t pc, uint64_t sp, bool has_frame_pointer,
               uint64_t frame_pointer)
{
    frame->pc = pc;
    frame->sp = sp;
    frame->frame_pointer = frame_pointer;
    frame->has_frame_pointer = has_frame_pointer;
    frame->is_exact = false;
    frame->registers = NULL;
}

/* Towards the first frame, addresses on a stack only grow, but there may be several stacks. A frame
 * of no size has its return address in a register. */
static bool may_be_cfa(struct frame *frame, const struct rule *rule, uint64_t cfa)
{
    if (rule->may_leave_stack)
        return frame->stacks_left++ < STACKS_LEFT_MAX;
    return cfa > frame->sp || (cfa == frame->sp && !rule->return_address.is_in_memory);
}

enum step frame_step_to_caller(struct walk *walk, struct frame *frame, const struct rule *rule)
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
        return frame_cut(walk, STACK_CUT_NO_UNWIND_INFO);
    step = read_place(walk, frame, &rule->return_address, cfa, &pc);
    if (step == STEP_TAKEN && rule->has_frame_pointer)
        step = read_frame_pointer(walk, frame, rule, cfa, &has_frame_pointer, &frame_pointer);
    if (step == STEP_TAKEN) {
        follow_base_pointer(frame, rule, cfa);
        frame_set(frame, pc, cfa, has_frame_pointer, frame_pointer);
        frame->is_exact = rule->caller_is_exact;
    }
    return step;
}

enum step frame_step_to_interrupted(struct walk *walk, struct frame *frame,
                                    struct registers *interrupted)
{
    *interrupted = (struct registers){.known = (1ull << architecture.register_count) - 1};
    for (unsigned i = 0; i < architecture.register_count; i++) {
        if (!walk_read_stack(walk, frame->sp + signal_frame_offsets[i], &interrupted->values[i]))
            return frame_cut(walk, STACK_CUT_UNREADABLE);
    }
    *frame = frame_of(interrupted);
    return STEP_TAKEN;
}

enum step frame_step_to_left_stack(struct walk *walk, struct rule_tables *tables,
                                   struct frame *frame, const struct mapping *mapping,
                                   const struct rule *rule)
{
    /* Looking up other code's rules may move this rule. */
    bool is_new_stack = rule->kind == RULE_NEW_STACK;
    uint64_t pc, place = frame->sp + (uint64_t)(int64_t)rule->cfa.offset - sizeof pc;
    uint64_t address = frame->pc - !frame->is_exact - mapping->bias;
    struct left_stack left = {
        .function = rule_tables_function(tables, mapping->module, address) + mapping->bias,
        .frame_pointer = frame->frame_pointer,
    };
    if (!frame->has_frame_pointer)
        return frame_cut(walk, STACK_CUT_NO_REGISTER);
    if (!left_stack_fits(walk, tables, &left, place)) {
        if (is_new_stack)
            return STEP_WHOLE;
        /* So that it is copied next time, if it is not yet. */
        if (!walk_read_stack(walk, frame->frame_pointer, &pc))
            return frame_cut(walk, STACK_CUT_UNREADABLE);
        if (!left_stack_find(walk, tables, &left, &place) ||
            frame->stacks_left++ == STACKS_LEFT_MAX)
            return frame_cut(walk, STACK_CUT_NO_UNWIND_INFO);
    }
    if (!walk_read_stack(walk, place, &pc))
        return frame_cut(walk, STACK_CUT_UNREADABLE);
    frame_set(frame, pc, place + sizeof pc, true, frame->frame_pointer);
    return STEP_TAKEN;
}
