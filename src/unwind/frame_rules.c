#include "unwind/frame.h"
#include "unwind/signal_frame.h"
#include "unwind/code/calls.h"
#include "unwind/code_address.h"

/* `function` is the start of the function, in the process. `frame_pointer` is its caller's: the
 * caller's frame ends there, and the return address lies below, as far as the caller's own rule
 * says. */
struct left_stack {
    uint64_t function;
    uint64_t frame_pointer;
};

/* How far below the frame pointer to search: no function of Go's runtime that calls another on its
 * thread's stack has so large a frame. */
#define SEARCH_BYTES 4096u

/* Whether the code that returns to `address` was called directly; if so, sets *ret_target. */
static bool called_directly(struct walk *walk, uint64_t address, uint64_t *ret_target)
{
    uint8_t before[CALL_BYTES_MAX];
    const struct mapping *mapping = space_find(walk->space, address_of_call(address));
    return mapping && mapping->has_bias &&
           module_read(mapping->module, address - mapping->bias - sizeof before, before,
                       sizeof before) &&
           call_before(before, address, ret_target) == CALL_DIRECT;
}

/* The start of the frame's function, in the process. */
static uint64_t function_of(const struct walk *walk, const struct frame *frame,
                            const struct mapping *mapping)
{
    uint64_t address = lookup_address(frame->pc, frame->is_exact) - mapping->bias;
    return rule_tables_function(walk->tables, mapping->module, address) + mapping->bias;
}

/* The start of the function that the word at `place` returns to, if that is after a call of
 * `left->function` and in a frame that ends at the frame pointer; else 0. */
static uint64_t caller_at(struct walk *walk, const struct left_stack *left, uint64_t place)
{
    uint64_t word, target;
    if (!walk_peek_stack(walk, place, &word))
        return 0;
    const struct mapping *mapping = space_find(walk->space, address_of_call(word));
    if (!mapping || !mapping->has_bias || !called_directly(walk, word, &target) ||
        target != left->function)
        return 0;
    uint64_t address = address_of_call(word) - mapping->bias;
    const struct rule *rule = rule_tables_find(walk->tables, mapping->module, address);
    if (!rule || rule->kind != RULE_CALLER || rule->cfa.is_in_memory || rule->cfa_scale ||
        rule->cfa.register_number != architecture.sp ||
        place + 8 + (uint64_t)(int64_t)rule->cfa.offset != left->frame_pointer + 16)
        return 0;
    return rule_tables_function(walk->tables, mapping->module, address) + mapping->bias;
}

/* Whether the return address is at `place`. */
static bool left_stack_fits(struct walk *walk, const struct left_stack *left, uint64_t place)
{
    return caller_at(walk, left, place) != 0;
}

/* Sets *ret_place to where the return address is, below the frame pointer. Returns false if it is
 * not found. */
static bool left_stack_find(struct walk *walk, const struct left_stack *left, uint64_t *ret_place)
{
    uint64_t caller_return, called = 0;
    /* The caller's own return address usually says which function the caller is. */
    bool is_known = walk_peek_stack(walk, left->frame_pointer + 8, &caller_return) &&
                    called_directly(walk, caller_return, &called);
    unsigned count = 0;
    for (uint64_t bytes = 8; bytes < SEARCH_BYTES; bytes += 8) {
        uint64_t place = left->frame_pointer - bytes;
        uint64_t caller = caller_at(walk, left, place);
        if (!caller)
            continue;
        *ret_place = place;
        if (is_known && caller == called)
            return true;
        count++;
    }
    /* What earlier calls left behind may look the same. */
    return count == 1;
}

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
        .kept_registers = registers,
        .kept = UINT64_MAX,
    };
}

static enum step miss(struct walk *walk, bool was_lost)
{
    walk->misses_other_register = true;
    return frame_cut(walk, was_lost ? STACK_CUT_NO_UNWIND_INFO : STACK_CUT_NO_REGISTER);
}

static enum step read_base_pointer(struct walk *walk, const struct frame *frame,
                                   uint64_t *ret_value)
{
    *ret_value = frame->base_pointer;
    if (frame->base_pointer_at && !walk_read_stack(walk, frame->base_pointer_at, ret_value))
        return frame_cut(walk, STACK_CUT_UNREADABLE);
    return frame->base_pointer_at || frame->has_base_pointer
               ? STEP_TAKEN
               : miss(walk, registers_has(frame->kept_registers, architecture.base_pointer));
}

static enum step read_register(struct walk *walk, const struct frame *frame, unsigned number,
                               uint64_t *ret_value)
{
    if (number == architecture.sp) {
        if (frame->sp_is_least)
            return frame_cut(walk, STACK_CUT_NO_UNWIND_INFO);
        *ret_value = frame->sp;
    } else if (number == architecture.frame_pointer) {
        if (!frame->has_frame_pointer)
            return frame_cut(walk, STACK_CUT_NO_REGISTER);
        *ret_value = frame->frame_pointer;
    } else if (number == architecture.base_pointer) {
        return read_base_pointer(walk, frame, ret_value);
    } else if (number == architecture.link && frame->has_link) {
        *ret_value = frame->link;
    } else {
        bool was_lost = !(frame->kept >> number & 1);
        if (was_lost || !registers_has(frame->kept_registers, number))
            return miss(walk, was_lost);
        *ret_value = frame->kept_registers->values[number];
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
    bool is_in_frame = place->is_in_memory && place->register_number == RULE_CFA;
    bool is_by_sp = place->is_in_memory && place->register_number == architecture.sp;
    uint64_t at = (is_in_frame ? cfa : frame->sp) + (uint64_t)(int64_t)place->offset;
    /* Go on aarch64 saves it below the stack pointer (obj7.go), where the copy of the stack does
     * not reach in the innermost frame. */
    bool is_below = at + 8 == frame->sp && (is_by_sp || (is_in_frame && rule->may_leave_stack));
    bool is_same = place->register_number == architecture.frame_pointer && !place->is_in_memory;
    /* At a function's end the register has been restored, but the rule still has the place where it
     * was saved, which is no longer part of the stack. */
    bool is_own = is_in_frame || (is_by_sp && rule->is_from_code);
    bool is_same_again = is_own && !rule->may_leave_stack && at < frame->sp;
    bool is_not_saved =
        rule->may_not_be_saved && frame->has_frame_pointer && frame->frame_pointer != at;
    if (is_same || is_same_again || is_not_saved) {
        *ret_is_known = frame->has_frame_pointer;
        *ret_value = frame->frame_pointer;
        return STEP_TAKEN;
    }
    if (is_below) {
        *ret_is_known = walk_peek_stack(walk, at, ret_value);
        return STEP_TAKEN;
    }
    enum step step = read_place(walk, frame, place, cfa, ret_value);
    *ret_is_known = step == STEP_TAKEN;
    /* In a register that is not known. No caller may need it. */
    if (step == STEP_CUT && walk->stack->cut != STACK_CUT_UNREADABLE) {
        walk->stack->cut = STACK_WHOLE;
        walk->misses_other_register = false;
        return STEP_TAKEN;
    }
    return step;
}

/* As with the frame pointer, a register saved below the stack pointer has been restored. */
static void follow_base_pointer(struct frame *frame, const struct rule *rule, uint64_t cfa)
{
    uint64_t at = cfa + (uint64_t)(int64_t)rule->base_pointer_offset;
    if (rule->base_pointer_offset == RULE_BASE_POINTER_SAME)
        return;
    if (rule->base_pointer_offset == RULE_BASE_POINTER_LOST) {
        frame->has_base_pointer = false;
        frame->base_pointer_at = 0;
    } else if (rule->may_leave_stack || at >= frame->sp) {
        frame->base_pointer_at = at;
    }
}

void frame_set(struct frame *frame, uint64_t pc, uint64_t sp, bool has_frame_pointer,
               uint64_t frame_pointer, uint64_t kept)
{
    frame->pc = pc;
    frame->sp = sp;
    frame->frame_pointer = frame_pointer;
    frame->has_frame_pointer = has_frame_pointer;
    frame->sp_is_least = false;
    frame->is_exact = false;
    frame->registers = NULL;
    frame->kept &= kept;
    frame->has_link = false;
}

/* Towards the first frame, addresses on a stack only grow, but there may be several stacks. A frame
 * of no size has its return address in a register. */
static bool may_be_cfa(struct frame *frame, const struct rule *rule, uint64_t cfa)
{
    return cfa > frame->sp || (cfa == frame->sp && !rule->return_address.is_in_memory) ||
           (rule->may_leave_stack && frame->stacks_left++ < STACKS_LEFT_MAX);
}

/* Whether the frame has its record at a known distance from the CFA. */
static bool has_record(const struct rule *rule)
{
    const struct rule_place *saved = &rule->frame_pointer, *address = &rule->return_address;
    return rule->has_frame_pointer && saved->is_in_memory && address->is_in_memory &&
           saved->register_number == RULE_CFA && address->register_number == RULE_CFA &&
           address->offset == saved->offset + 8;
}

static enum step read_cfa(struct walk *walk, const struct frame *frame, const struct rule *rule,
                          uint64_t *ret_cfa)
{
    uint64_t value = 0, index = 0;
    /* The stack pointer is not known, but the frame pointer, which has led here, points to the
     * record. */
    if (frame->sp_is_least && rule->cfa.register_number == architecture.sp && has_record(rule)) {
        *ret_cfa = frame->frame_pointer - (uint64_t)(int64_t)rule->frame_pointer.offset;
        return STEP_TAKEN;
    }
    enum step step = read_register(walk, frame, rule->cfa.register_number, &value);
    if (step == STEP_TAKEN && rule->cfa_scale)
        step = read_register(walk, frame, rule->cfa_index, &index);
    if (step != STEP_TAKEN)
        return step;
    value += (uint64_t)(int64_t)rule->cfa.offset + index * rule->cfa_scale;
    if (rule->cfa.is_in_memory && !walk_read_stack(walk, value, &value))
        return frame_cut(walk, STACK_CUT_UNREADABLE);
    *ret_cfa = value + (uint64_t)(int64_t)rule->cfa_offset;
    return STEP_TAKEN;
}

enum step frame_step_to_caller(struct walk *walk, struct frame *frame, const struct rule *rule)
{
    uint64_t cfa, pc, frame_pointer = 0;
    bool has_frame_pointer = false;
    enum step step = read_cfa(walk, frame, rule, &cfa);
    if (step != STEP_TAKEN)
        return step;
    /* It was cleared for the first frame of the other stack. */
    if (rule->may_leave_stack && !rule->cfa.is_in_memory &&
        cfa == (uint64_t)(int64_t)rule->cfa.offset)
        return STEP_WHOLE;
    if (!may_be_cfa(frame, rule, cfa))
        return frame_cut(walk, STACK_CUT_NO_UNWIND_INFO);
    step = read_place(walk, frame, &rule->return_address, cfa, &pc);
    if (step == STEP_TAKEN && !pc && rule->has_caller)
        return frame_cut(walk, STACK_CUT_NO_UNWIND_INFO);
    if (step == STEP_TAKEN && rule->has_frame_pointer)
        step = read_frame_pointer(walk, frame, rule, cfa, &has_frame_pointer, &frame_pointer);
    if (step == STEP_TAKEN) {
        pc &= walk->code_mask;
        follow_base_pointer(frame, rule, cfa);
        frame_set(frame, pc, cfa, has_frame_pointer, frame_pointer, rule->kept);
        frame->is_exact = rule->caller_is_exact && space_find(walk->space, pc);
        frame->has_link =
            rule->link_offset &&
            walk_peek_stack(walk, cfa + (uint64_t)(int64_t)rule->link_offset, &frame->link);
    }
    return step;
}

enum step frame_step_to_caller_of(struct walk *walk, struct frame *frame,
                                  const struct mapping *mapping, const struct rule *rule)
{
    struct frame caller = *frame;
    uint64_t target;
    enum step step = frame_step_to_caller(walk, &caller, rule);
    if (step == STEP_CUT)
        return step;
    if (step == STEP_WHOLE || !called_directly(walk, caller.pc, &target) ||
        target != function_of(walk, frame, mapping))
        return frame_cut(walk, STACK_CUT_NO_UNWIND_INFO);
    *frame = caller;
    return STEP_TAKEN;
}

/* Finds the stack pointer of Go's asmcgocall on the stack that it left. On the thread's stack it
 * has the struct g of the goroutine, which begins with the bounds of its stack, and how far below
 * that stack's end the stack pointer was; or 0 and the stack pointer, if it did not switch
 * (runtime/asm_arm64.s and runtime2.go, Go 1.17 to 1.26). */
static enum step read_left_pointer(struct walk *walk, const struct frame *frame, uint64_t *ret_sp,
                                   bool *ret_has_switched)
{
    uint64_t goroutine, below, end = 0;
    if (frame->sp_is_least)
        return frame_cut(walk, STACK_CUT_NO_UNWIND_INFO);
    if (!walk_read_stack(walk, frame->sp, &goroutine) ||
        !walk_read_stack(walk, frame->sp + sizeof goroutine, &below) ||
        (goroutine && !walk_read_other(walk, goroutine + sizeof end, &end)))
        return frame_cut(walk, STACK_CUT_UNREADABLE);
    *ret_sp = goroutine ? end - below : below;
    *ret_has_switched = goroutine != 0;
    return STEP_TAKEN;
}

enum step frame_step_from_c(struct walk *walk, struct frame *frame, const struct mapping *mapping,
                            const struct rule *rule)
{
    struct rule left = *rule;
    bool has_switched;
    enum step step = read_left_pointer(walk, frame, &frame->sp, &has_switched);
    if (step != STEP_TAKEN)
        return step;
    if (frame->stacks_left++ == STACKS_LEFT_MAX)
        return frame_cut(walk, STACK_CUT_NO_UNWIND_INFO);
    /* If it did not switch, it overwrote the saved frame pointer. */
    left.has_frame_pointer &= has_switched;
    return frame_step_to_caller_of(walk, frame, mapping, &left);
}

#define CALLER_BYTES_MAX 4096u /* how much of a function's code to search for a call */
#define CALLS_MAX 8            /* calls to try */

/* Finds a call of `called` in the function at `caller`, one at which that function's own return
 * address is at the stack pointer. Returns the address after the call, or 0. */
static uint64_t find_call(struct walk *walk, uint64_t caller, uint64_t called)
{
    const struct mapping *mapping = space_find(walk->space, caller);
    unsigned calls = 0;
    if (!mapping || !mapping->has_bias)
        return 0;
    for (uint64_t next = caller + 4; next - caller < CALLER_BYTES_MAX && calls < CALLS_MAX;
         next += 4) {
        uint64_t target, address = address_of_call(next) - mapping->bias;
        if (!called_directly(walk, next, &target) || target != called)
            continue;
        calls++;
        if (rule_tables_function(walk->tables, mapping->module, address) != caller - mapping->bias)
            return 0;
        const struct rule *rule = rule_tables_find(walk->tables, mapping->module, address);
        const struct rule_place *saved = rule ? &rule->return_address : NULL;
        if (saved && rule->kind == RULE_CALLER && saved->is_in_memory && !saved->offset &&
            saved->register_number == architecture.sp)
            return next;
    }
    return 0;
}

enum step frame_step_without_link(struct walk *walk, struct frame *frame,
                                  const struct mapping *mapping)
{
    uint64_t saved, caller, next = 0;
    if (!walk_read_stack(walk, frame->sp, &saved))
        return frame_cut(walk, STACK_CUT_UNREADABLE);
    if (called_directly(walk, saved & walk->code_mask, &caller))
        next = find_call(walk, caller, function_of(walk, frame, mapping));
    if (!next)
        return miss(walk, false);
    frame_set(frame, next, frame->sp, frame->has_frame_pointer, frame->frame_pointer, 0);
    return STEP_TAKEN;
}

enum step frame_step_to_interrupted(struct walk *walk, struct frame *frame,
                                    struct registers *interrupted)
{
    if (frame->sp_is_least)
        return frame_cut(walk, STACK_CUT_NO_UNWIND_INFO);
    *interrupted = (struct registers){.known = (1ull << architecture.register_count) - 1};
    for (unsigned i = 0; i < architecture.register_count; i++) {
        if (!walk_read_stack(walk, frame->sp + signal_frame_offsets[i], &interrupted->values[i]))
            return frame_cut(walk, STACK_CUT_UNREADABLE);
    }
    *frame = frame_of(interrupted);
    return STEP_TAKEN;
}

enum step frame_step_to_left_stack(struct walk *walk, struct frame *frame,
                                   const struct mapping *mapping, const struct rule *rule)
{
    /* Looking up other code's rules may move this rule. */
    bool is_new_stack = rule->kind == RULE_NEW_STACK;
    uint64_t pc, place = frame->sp + (uint64_t)(int64_t)rule->cfa.offset - sizeof pc;
    struct left_stack left = {
        .function = function_of(walk, frame, mapping),
        .frame_pointer = frame->frame_pointer,
    };
    if (!frame->has_frame_pointer)
        return frame_cut(walk, STACK_CUT_NO_REGISTER);
    if (!left_stack_fits(walk, &left, place)) {
        if (is_new_stack)
            return STEP_WHOLE;
        /* So that it is copied next time, if it is not yet. */
        if (!walk_read_stack(walk, frame->frame_pointer, &pc))
            return frame_cut(walk, STACK_CUT_UNREADABLE);
        if (!left_stack_find(walk, &left, &place) || frame->stacks_left++ == STACKS_LEFT_MAX)
            return frame_cut(walk, STACK_CUT_NO_UNWIND_INFO);
    }
    if (!walk_read_stack(walk, place, &pc))
        return frame_cut(walk, STACK_CUT_UNREADABLE);
    frame_set(frame, pc, place + sizeof pc, true, frame->frame_pointer, 0);
    return STEP_TAKEN;
}
