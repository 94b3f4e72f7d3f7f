#include "unwind/code/calls.h"
#include "unwind/code_address.h"
#include "unwind/frame.h"
#include "unwind/signal_frame.h"

#define ENTRY_BYTES 64 /* code from a program's entry to the call that does not return */

bool frame_follows_call(const struct walk *walk, uint64_t address)
{
    uint8_t before[CALL_BYTES_MAX];
    uint64_t target;
    const struct mapping *mapping = space_find(walk->space, address_of_call(address));
    if (!mapping)
        return false;
    return !mapping->has_bias ||
           !module_read(mapping->module, address - CALL_BYTES_MAX - mapping->bias, before,
                        sizeof before) ||
           call_before(before, address, &target) != CALL_NONE;
}

/* Whether the code there is what the kernel makes a signal handler return to. */
static bool ends_handler(const struct walk *walk, uint64_t address)
{
    uint8_t code[SIGNAL_RETURN_BYTES];
    const struct mapping *mapping = space_find(walk->space, address);
    return mapping && mapping->has_bias &&
           module_read(mapping->module, address - mapping->bias, code, sizeof code) &&
           signal_return_is_at(code);
}

/* Whether a thread may have begun in this function: the program's entry is near, or only the
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

/* Whether a saved frame pointer is that of another frame of the stack: the return address beside
 * it may then be in code that was generated since the mappings were read. */
static bool leads_to_frame(const struct walk *walk, const struct frame *frame, uint64_t saved)
{
    uint64_t word;
    return saved > frame->frame_pointer && saved % sizeof word == 0 &&
           walk_read_copy(&walk->snapshot->stack, saved, &word);
}

/* The psABIs mark the first frame by a frame pointer of 0. But if the register is not used as a
 * frame pointer, it may be 0 in any frame. */
static bool is_first(const struct walk *walk, const struct frame *frame)
{
    return (!frame->has_frame_pointer || !frame->frame_pointer) && is_first_function(walk, frame);
}

/* Follows the frame pointer from a frame that has set it up. */
static enum step step_by_own_pointer(struct walk *walk, struct frame *frame)
{
    uint64_t saved, pc;
    if (is_first(walk, frame))
        return STEP_WHOLE;
    if (!frame->has_frame_pointer)
        return frame_cut(walk, STACK_CUT_NO_REGISTER);
    if (frame->frame_pointer < frame->sp || frame->frame_pointer % sizeof saved)
        return frame_cut(walk, STACK_CUT_NO_UNWIND_INFO);
    if (!walk_read_stack(walk, frame->frame_pointer, &saved) ||
        !walk_read_stack(walk, frame->frame_pointer + sizeof saved, &pc))
        return frame_cut(walk, STACK_CUT_UNREADABLE);
    pc &= walk->code_mask;
    /* This also excludes 0, which is what most memory holds. */
    if (!frame_follows_call(walk, pc) && !ends_handler(walk, pc)) {
        if (pc && leads_to_frame(walk, frame, saved) && !space_find(walk->space, pc))
            walk->hints->has_unknown_address = true;
        return frame_cut(walk, STACK_CUT_NO_UNWIND_INFO);
    }
    frame_set(frame, pc, frame->frame_pointer + 2 * sizeof saved, true, saved, 0);
    /* Where calls do not push the return address, the record may be anywhere in the frame (AAPCS64,
     * 6.4.6). */
    frame->sp_is_least = architecture.link != REGISTERS_MAX;
    frame->has_base_pointer = false;
    frame->base_pointer_at = 0;
    return STEP_TAKEN;
}

/* Whether both addresses are in one function; false if the function is not known. */
static bool is_one_function(const struct walk *walk, uint64_t address, uint64_t other)
{
    const struct mapping *mapping = space_find(walk->space, address);
    if (!mapping || !mapping->has_bias || space_find(walk->space, other) != mapping)
        return false;
    uint64_t function =
        rule_tables_function(walk->tables, mapping->module, address - mapping->bias);
    return function &&
           rule_tables_function(walk->tables, mapping->module, other - mapping->bias) == function;
}

/* An address that is not on this stack is probably no frame pointer, so no other stack is asked
 * for. */
static bool read_if_on_stack(const struct walk *walk, uint64_t address, uint64_t *ret_word)
{
    const struct stack_copy *stack = &walk->snapshot->stack;
    bool is_on_stack = address >= stack->address && address < stack->end;
    return is_on_stack ? walk_read_stack(walk, address, ret_word)
                       : walk_peek_stack(walk, address, ret_word);
}

/* Where calls leave the return address in a register, a function has its caller's frame pointer
 * until it has saved both, and may never do so. The register shows which: once the function has
 * called another, it points into the function itself. */
static enum step step_by_link(struct walk *walk, struct frame *frame)
{
    uint64_t saved;
    if (!frame->registers || !registers_has(frame->registers, architecture.link))
        return frame_cut(walk, STACK_CUT_NO_REGISTER);
    uint64_t link = frame->registers->values[architecture.link] & walk->code_mask;
    bool is_saved = frame->has_frame_pointer &&
                    read_if_on_stack(walk, frame->frame_pointer + sizeof saved, &saved) &&
                    (saved & walk->code_mask) == link;
    const struct mapping *mapping = space_find(walk->space, frame->pc);
    /* Generated code usually has a frame, and no file shows where its functions begin. */
    bool is_generated = mapping && !mapping->has_bias;
    if (is_saved || is_generated || is_one_function(walk, frame->pc, address_of_call(link)))
        return step_by_own_pointer(walk, frame);
    bool is_known = mapping && mapping->has_bias &&
                    rule_tables_function(walk->tables, mapping->module, frame->pc - mapping->bias);
    if (!is_known || !frame_follows_call(walk, link))
        return frame_cut(walk, STACK_CUT_NO_UNWIND_INFO);
    frame_set(frame, link, frame->sp, frame->has_frame_pointer, frame->frame_pointer, 0);
    return STEP_TAKEN;
}

enum step frame_step_by_pointer(struct walk *walk, struct frame *frame)
{
    return frame->is_exact && architecture.link != REGISTERS_MAX ? step_by_link(walk, frame)
                                                                 : step_by_own_pointer(walk, frame);
}

enum step frame_step_by_nothing(struct walk *walk, const struct frame *frame)
{
    return is_first(walk, frame) ? STEP_WHOLE : frame_cut(walk, STACK_CUT_NO_UNWIND_INFO);
}

enum step frame_step_by_code(struct walk *walk, struct frame *frame, const struct rule *rule)
{
    struct frame caller = *frame;
    bool has_caller = frame_step_to_caller(walk, &caller, rule) == STEP_TAKEN;
    if (has_caller && (frame_follows_call(walk, caller.pc) || ends_handler(walk, caller.pc))) {
        *frame = caller;
        return STEP_TAKEN;
    }
    /* The stack is not copied there, or not yet. */
    if (walk->stack->cut == STACK_CUT_UNREADABLE)
        return STEP_CUT;
    bool lacks_register = walk->stack->cut == STACK_CUT_NO_REGISTER;
    walk->stack->cut = STACK_WHOLE;
    walk->misses_other_register = false;
    if (!rule->has_no_record || lacks_register)
        return frame_step_by_pointer(walk, frame);
    /* The caller may be in code that was generated since the mappings were read. */
    if (has_caller && caller.pc && !space_find(walk->space, caller.pc))
        walk->hints->has_unknown_address = true;
    return frame_step_by_nothing(walk, frame);
}

enum step frame_step_from_no_code(struct walk *walk, struct frame *frame)
{
    uint64_t pc;
    walk->hints->has_unknown_address = true;
    bool is_on_stack = architecture.link == REGISTERS_MAX;
    if (!is_on_stack && frame->registers && registers_has(frame->registers, architecture.link))
        pc = frame->registers->values[architecture.link] & walk->code_mask;
    else if (!is_on_stack || !walk_read_stack(walk, frame->sp, &pc))
        return frame_cut(walk, STACK_CUT_NO_UNWIND_INFO);
    if (!frame_follows_call(walk, pc))
        return frame_cut(walk, STACK_CUT_NO_UNWIND_INFO);
    frame_set(frame, pc, frame->sp + (is_on_stack ? sizeof pc : 0), frame->has_frame_pointer,
              frame->frame_pointer, UINT64_MAX);
    return STEP_TAKEN;
}

bool frame_step_by_return(struct walk *walk, struct frame *frame)
{
    uint64_t pc;
    if (!walk_read_stack(walk, frame->sp, &pc) ||
        (!frame_follows_call(walk, pc) && !ends_handler(walk, pc)))
        return false;
    frame_set(frame, pc, frame->sp + sizeof pc, frame->has_frame_pointer, frame->frame_pointer,
              UINT64_MAX);
    return true;
}
