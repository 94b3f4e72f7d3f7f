/* A Go frame holds, from the top: the return address; unless the frame is empty, the caller's frame
 * pointer, to which the frame pointer register then points; and as many bytes as the function table
 * says (cmd/internal/obj/x86/obj6.go, "preprocess").
 *
 * Functions that set the stack pointer keep the frame pointer. If they saved the caller's, it leads
 * to their own frame, on the stack that they left; else to their caller's (asm_amd64.s,
 * sys_linux_amd64.s). */
#include "unwind/go_frame.h"

#include <string.h>

enum { RBP = 6, RSP = 7 };

struct rule go_frame_rule(const struct go_place *place)
{
    struct rule rule = {
        .kind = RULE_CALLER,
        .has_frame_pointer = true,
        .has_caller = true, /* only the outermost functions of stacks have none */
        .cfa = {RSP, false, (int32_t)place->frame_bytes + 8},
        .return_address = {RULE_CFA, true, -8},
        .frame_pointer = {RBP, false, 0},
        .base_pointer_offset = RULE_BASE_POINTER_LOST, /* Go functions preserve no registers */
    };
    if (place->frame_bytes) {
        rule.frame_pointer = (struct rule_place){RULE_CFA, true, -16};
        rule.may_not_be_saved = !place->is_at_call;
    }
    return rule;
}

/* Whether the code at the address is this, at most 4 bytes. */
static bool is_at(const struct go_place *place, uint64_t address, const void *code, size_t bytes)
{
    uint8_t there[4];
    return module_read(place->table->module, address, there, bytes) &&
           memcmp(there, code, bytes) == 0;
}

static bool code_is(const struct go_place *place, const void *code, size_t bytes)
{
    return is_at(place, place->address, code, bytes);
}

/* Whether the frame pointer is not set yet, or already restored, so that the stack pointer was not
 * switched: within a few bytes of where it is first moved, or where the frame is released. */
static bool is_at_edge(const struct go_place *place)
{
    static const uint8_t add_8[] = {0x48, 0x83, 0xc4}, add_32[] = {0x48, 0x81, 0xc4};
    return place->address - place->function->start < 14 || code_is(place, add_8, sizeof add_8) ||
           code_is(place, add_32, sizeof add_32);
}

static bool begins_with(const struct go_place *place, const void *code, size_t bytes)
{
    return is_at(place, place->function->start, code, bytes);
}

void go_frame_allow_other_stack(const struct go_place *place, struct rule *rule)
{
    static const uint8_t push_rbp[] = {0x55}, sub_rsp[] = {0x48, 0x83, 0xec};
    bool has_frame = place->frame_bytes && (begins_with(place, push_rbp, sizeof push_rbp) ||
                                            begins_with(place, sub_rsp, sizeof sub_rsp));
    rule->may_leave_stack = true;
    if (!has_frame) {
        rule->kind = RULE_LEFT_STACK;
        rule->frame_pointer = (struct rule_place){RBP, false, 0};
    } else if (place->is_at_call || !is_at_edge(place)) {
        rule->cfa = (struct rule_place){RBP, false, 16};
        rule->may_not_be_saved = false;
    }
}

void go_frame_inject(struct rule *rule)
{
    rule->caller_is_exact = true;
}

void go_frame_begin_thread(const struct go_place *place, struct rule *rule)
{
    (void)place;
    rule->kind = RULE_NEW_STACK;
}

void go_frame_end(const struct go_place *place, struct rule *rule)
{
    /* The stack pointer is set right before a call, or before mov $0, %rbp and a call. */
    static const uint8_t call[] = {0xe8}, clear_rbp[] = {0x48, 0xc7, 0xc5};
    if (place->is_at_call || code_is(place, call, sizeof call) ||
        code_is(place, clear_rbp, sizeof clear_rbp))
        *rule = (struct rule){.kind = RULE_FIRST_FRAME};
}
