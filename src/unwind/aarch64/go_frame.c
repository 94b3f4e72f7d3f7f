/* A frame of Go has, where the stack pointer is once it is made, the return address; the caller's
 * frame pointer lies below, in the room that the function's own callees leave at their tops, and
 * the register then points to it. A function without a frame has both in their registers, until it
 * calls another (cmd/internal/obj/arm64/obj7.go, "preprocess"; runtime/traceback.go).
 *
 * Of the functions that set the stack pointer, most keep the frame pointer, which leads to their
 * frame on the stack that they left. Not so systemstack before Go 1.21, nor asmcgocall: they load
 * what the thread's own stack had (asm_arm64.s). Hence is_from_code: see frame_step_to_caller_of.
 */
#include "unwind/go_frame.h"
#include "unwind/code/rule_code.h"

enum { X29 = 29, X30 = 30, SP = 31 };

/* Some instructions, for is_at: the Arm Architecture Reference Manual for A-profile, C6.2. */
struct form {
    uint32_t mask, bits;
};
static const struct form call = {0xfc000000u, 0x94000000u};          /* bl */
static const struct form indirect_call = {0xfffffc1fu, 0xd63f0000u}; /* blr xN */
static const struct form system_call = {0xffffffffu, 0xd4000001u};   /* svc #0 */
static const struct form set_sp = {0xfffffc1fu, 0x9100001fu};        /* mov sp, xN */
static const struct form add_to_sp = {0xff8003ffu, 0x910003ffu};     /* add sp, sp, #n */
static const struct form push_link = {0xffe00fffu, 0xf8000ffeu};     /* str x30, [sp, #-n]! */
static const struct form pop_link = {0xffe00fffu, 0xf84007feu};      /* ldr x30, [sp], #n */
static const struct form move_sp = {0xffffffffu, 0x9100029fu};       /* mov sp, x20 */
static const struct form load_both = {0xffffffffu, 0xa97ffbfdu};     /* ldp x29, x30, [sp, #-8] */
static const struct form load_pointer = {0xffffffffu, 0xf85f83fdu};  /* ldur x29, [sp, #-8] */

/* str x30, [sp, #-n]!; stur x29, [sp, #-8]; sub x29, sp, #8 */
#define PROLOGUE_BYTES 12

static bool is_at(const struct go_place *place, uint64_t address, struct form form)
{
    uint32_t instruction;
    return module_read(place->table->module, address, &instruction, sizeof instruction) &&
           (instruction & form.mask) == form.bits;
}

/* More than any function has that is looked for: of larger ones nothing is said. */
#define SEARCH_BYTES_MAX (64u << 10)

/* Whether one of the function's instructions before the address is of this form. Jumps around it
 * are not followed, so that some stacks are cut that need not be. */
static bool has_passed(const struct go_place *place, struct form form)
{
    uint64_t start = place->function->start;
    if (place->address - start > SEARCH_BYTES_MAX)
        return true;
    for (uint64_t at = start; at + 4 <= place->address; at += 4) {
        if (is_at(place, at, form))
            return true;
    }
    return false;
}

/* Whether the link register may no longer be the caller's. */
static bool has_called(const struct go_place *place)
{
    return place->is_at_call || has_passed(place, call) || has_passed(place, indirect_call);
}

/* Where the function first has a frame, and how large that is. */
static bool find_frame(const struct go_place *place, uint64_t *ret_begin, uint32_t *ret_bytes)
{
    return pclntab_frame_begin(place->table, place->function, ret_begin, ret_bytes) &&
           *ret_bytes <= GO_FRAME_BYTES_MAX;
}

/* Frames that are made by hand, in assembly, are as their code says; but those of calls that were
 * injected are as others. */
static struct rule rule_of_frame(const struct go_place *place, uint64_t begin, uint32_t first_bytes)
{
    struct rule rule = {
        .kind = RULE_CALLER,
        .has_frame_pointer = true,
        .has_caller = true, /* only the functions at the end of every stack have none */
        .cfa = {SP, false, (int32_t)place->frame_bytes},
        .base_pointer_offset = RULE_BASE_POINTER_LOST, /* Go's functions preserve no register */
        .may_not_be_saved = !place->is_at_call,
    };
    bool is_by_compiler = is_at(place, begin - 4, push_link) || is_at(place, begin - 4, move_sp);
    if (!is_by_compiler && !place->was_injected)
        return rule_from_returns(place->table->module, place->address);
    /* A large frame may be given back in two steps, of which the table knows one. */
    if (is_at(place, place->address - 4, add_to_sp) && is_at(place, place->address, add_to_sp))
        return (struct rule){.kind = RULE_ON_THE_MOVE};
    /* Functions in assembly may make room below, for a call. */
    int32_t room_bytes = (int32_t)place->frame_bytes - (int32_t)first_bytes;
    rule.return_address = (struct rule_place){SP, true, room_bytes};
    rule.frame_pointer = (struct rule_place){SP, true, room_bytes - 8};
    return rule;
}

struct rule go_frame_rule(const struct go_place *place)
{
    uint64_t begin;
    uint32_t first_bytes;
    bool has_frame = find_frame(place, &begin, &first_bytes);
    if (place->frame_bytes)
        return has_frame ? rule_of_frame(place, begin, first_bytes)
                         : (struct rule){.kind = RULE_ON_THE_MOVE};
    /* Once the compiler's frame is given back, nothing is called but morestack. */
    if ((!has_frame || place->address < begin) && has_called(place))
        return (struct rule){.kind = RULE_ON_THE_MOVE};
    return (struct rule){
        .kind = RULE_CALLER,
        .has_frame_pointer = true,
        .has_caller = true,
        .cfa = {SP, false, 0},
        .return_address = {X30, false, 0},
        .frame_pointer = {X29, false, 0},
        .base_pointer_offset = RULE_BASE_POINTER_LOST,
    };
}

/* Whether the frame pointer is not set yet, or is the caller's again. */
static bool is_at_edge(const struct go_place *place)
{
    return place->address - place->function->start < PROLOGUE_BYTES ||
           is_at(place, place->address - 4, load_both) ||
           is_at(place, place->address - 4, load_pointer);
}

void go_frame_allow_other_stack(const struct go_place *place, struct rule *rule)
{
    uint64_t begin;
    uint32_t first_bytes;
    if (!place->frame_bytes || (!place->is_at_call && is_at_edge(place)) ||
        !find_frame(place, &begin, &first_bytes))
        return;
    /* systemstack that was on the thread's stack already goes on as if it had not been called. */
    if (!is_at(place, place->function->start, push_link) ||
        is_at(place, place->address - 4, pop_link) || is_at(place, place->address - 8, pop_link)) {
        *rule = (struct rule){.kind = RULE_ON_THE_MOVE};
        return;
    }
    rule->may_leave_stack = true;
    rule->may_not_be_saved = false;
    rule->is_from_code = true;
    int32_t bytes = (int32_t)first_bytes;
    rule->cfa = (struct rule_place){X29, false, 8 + bytes};
    rule->return_address = (struct rule_place){RULE_CFA, true, -bytes};
    rule->frame_pointer = (struct rule_place){RULE_CFA, true, -bytes - 8};
}

/* The handler saved the link register on the stack first, in 16 bytes (signal_arm64.go,
 * "pushCall"). */
void go_frame_inject(struct rule *rule)
{
    rule->caller_is_exact = true;
    rule->cfa.offset += 16;
    rule->link_offset = -16;
}

/* Behind the system call there are two threads with these registers. */
void go_frame_begin_thread(const struct go_place *place, struct rule *rule)
{
    if (has_passed(place, system_call))
        *rule = (struct rule){.kind = RULE_ON_THE_MOVE};
}

/* Before it sets the stack pointer, it calls others. */
void go_frame_end(const struct go_place *place, struct rule *rule)
{
    if (has_passed(place, set_sp))
        *rule = (struct rule){.kind = RULE_FIRST_FRAME};
}
