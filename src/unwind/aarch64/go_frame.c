/* A Go function saves its return address at the bottom of its frame, where the stack pointer then
 * points, and the caller's frame pointer 8 bytes below that, where its own callees leave room. The
 * frame pointer register then points to the saved frame pointer. A function without a frame keeps
 * both in registers (cmd/internal/obj/arm64/obj7.go, "preprocess"; runtime/traceback.go).
 *
 * Most functions that switch stacks keep the frame pointer, which leads to their frame on the stack
 * that they left. systemstack before Go 1.21 and asmcgocall load another value (asm_arm64.s), so a
 * caller that is found by it must be checked: see frame_step_to_caller_of. asmcgocall saves on the
 * thread's stack where it left the goroutine's: see frame_step_from_c. */
#include "unwind/go_frame.h"
#include "unwind/aarch64/instruction.h"
#include "unwind/code/calls.h"
#include "unwind/code/rule_code.h"

enum { X29 = 29, X30 = 30, SP = 31 };

static const struct form set_sp = {0xfffffc1fu, 0x9100001fu};       /* mov sp, xN */
static const struct form add_to_sp = {0xff8003ffu, 0x910003ffu};    /* add sp, sp, #n */
static const struct form push_link = {0xffe00fffu, 0xf8000ffeu};    /* str x30, [sp, #-n]! */
static const struct form pop_link = {0xffe00fffu, 0xf84007feu};     /* ldr x30, [sp], #n */
static const struct form move_sp = {0xffffffffu, 0x9100029fu};      /* mov sp, x20 */
static const struct form call_x = {0xfffffc1fu, 0xd63f0000u};       /* blr xN */
static const struct form load_both = {0xffffffffu, 0xa97ffbfdu};    /* ldp x29, x30, [sp, #-8] */
static const struct form load_pointer = {0xffffffffu, 0xf85f83fdu}; /* ldur x29, [sp, #-8] */

/* str x30, [sp, #-n]!; stur x29, [sp, #-8]; sub x29, sp, #8 */
#define PROLOGUE_BYTES 12

static bool is_at(const struct go_place *place, uint64_t address, struct form form)
{
    uint32_t instruction;
    return module_read(place->table->module, address, &instruction, sizeof instruction) &&
           has_form(instruction, form);
}

#define SEARCH_BYTES_MAX (64u << 10) /* no relevant function is larger */

typedef bool instruction_test(const struct go_place *place, uint64_t address);

static bool is_call_at(const struct go_place *place, uint64_t address)
{
    return go_code_is_call(place->table, address + 3);
}

static bool is_system_call_at(const struct go_place *place, uint64_t address)
{
    uint8_t code[SYSTEM_CALL_BYTES_MAX];
    return module_read(place->table->module, address, code, sizeof code) &&
           system_call_before(code);
}

static bool sets_sp(const struct go_place *place, uint64_t address)
{
    return is_at(place, address, set_sp);
}

/* Whether any instruction of the function before the address passes the test. Jumps are not
 * followed: an instruction that was jumped over also counts, which may cut a stack needlessly. */
static bool has_passed(const struct go_place *place, instruction_test *test)
{
    uint64_t start = place->function->start;
    if (place->address - start > SEARCH_BYTES_MAX)
        return true;
    for (uint64_t at = start; at + 4 <= place->address; at += 4) {
        if (test(place, at))
            return true;
    }
    return false;
}

/* Finds where the function first has a frame, and the size of that. */
static bool find_frame(const struct go_place *place, uint64_t *ret_begin, uint32_t *ret_bytes)
{
    return pclntab_frame_begin(place->table, place->function, ret_begin, ret_bytes) &&
           *ret_bytes <= GO_FRAME_BYTES_MAX;
}

/* Frames made by handwritten assembly are only described by their code. */
static struct rule rule_of_frame(const struct go_place *place, uint64_t begin, uint32_t first_bytes,
                                 struct rule rule)
{
    bool is_by_compiler = is_at(place, begin - 4, push_link) || is_at(place, begin - 4, move_sp);
    if (!is_by_compiler && !place->was_injected)
        return rule_from_returns(place->table->module, place->address);
    /* A large frame may be released in two steps, but the table only has one. */
    if (is_at(place, place->address - 4, add_to_sp) && is_at(place, place->address, add_to_sp))
        return (struct rule){.kind = RULE_ON_THE_MOVE};
    /* Assembly may have enlarged the frame to call C. */
    int32_t room_bytes = (int32_t)place->frame_bytes - (int32_t)first_bytes;
    rule.return_address = (struct rule_place){SP, true, room_bytes};
    rule.frame_pointer = (struct rule_place){SP, true, room_bytes - 8};
    rule.may_not_be_saved = !place->is_at_call;
    return rule;
}

struct rule go_frame_rule(const struct go_place *place)
{
    uint64_t begin;
    uint32_t first_bytes;
    bool has_frame = find_frame(place, &begin, &first_bytes);
    const struct rule on_the_move = {.kind = RULE_ON_THE_MOVE};
    const struct rule rule = {
        .kind = RULE_CALLER,
        .has_frame_pointer = true,
        .has_caller = true, /* only the outermost functions of stacks have none */
        .cfa = {SP, false, (int32_t)place->frame_bytes},
        .return_address = {X30, false, 0},
        .frame_pointer = {X29, false, 0},
        .base_pointer_offset = RULE_BASE_POINTER_LOST, /* Go functions preserve no registers */
    };
    if (place->frame_bytes)
        return has_frame ? rule_of_frame(place, begin, first_bytes, rule) : on_the_move;
    /* A call overwrites the link register. After the compiler's frame is released, the only call is
     * to morestack. */
    bool may_have_called = !has_frame || place->address < begin;
    return may_have_called && (place->is_at_call || has_passed(place, is_call_at)) ? on_the_move
                                                                                   : rule;
}

/* Whether the frame pointer register holds the caller's value: not set yet, or already restored. */
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
    /* The calls before the stack is switched are direct. */
    if (place->runs_c && rule->kind == RULE_CALLER && is_at(place, place->address - 3, call_x)) {
        rule->kind = RULE_RUNS_C;
        return;
    }
    if (!place->frame_bytes || (!place->is_at_call && is_at_edge(place)) ||
        !find_frame(place, &begin, &first_bytes))
        return;
    /* If already on the thread's stack, systemstack pops its frame and jumps to the function. */
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

/* The signal handler first pushes the link register, into 16 bytes (signal_arm64.go,
 * "pushCall"). */
void go_frame_inject(struct rule *rule)
{
    rule->caller_is_exact = true;
    rule->cfa.offset += 16;
    rule->link_offset = -16;
}

/* After the system call, both threads have these registers. */
void go_frame_begin_thread(const struct go_place *place, struct rule *rule)
{
    if (has_passed(place, is_system_call_at))
        *rule = (struct rule){.kind = RULE_ON_THE_MOVE};
}

/* Stacks are switched by setting the stack pointer; calls before that are still on the old stack.
 */
void go_frame_end(const struct go_place *place, struct rule *rule)
{
    if (has_passed(place, sets_sp))
        *rule = (struct rule){.kind = RULE_FIRST_FRAME};
}
