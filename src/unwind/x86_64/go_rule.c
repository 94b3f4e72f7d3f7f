/* A frame of Go, from the top: the return address; then, if the frame has any room, the caller's
 * frame pointer, which the register then points to; then as much as the function table says
 * (cmd/internal/obj/x86/obj6.go, "preprocess").
 *
 * Functions of the runtime that go from one stack to another, in its asm_amd64.s and
 * sys_linux_amd64.s, are marked in the table as setting the stack pointer. They keep the frame
 * pointer: if they saved the caller's, it leads to their own frame, on the stack that they left;
 * else to their caller's. */
#include "unwind/go_rule.h"
#include "unwind/code/calls.h"

#include <string.h>

enum { RBP = 6, RSP = 7 };

enum role {
    ROLE_NONE,
    ROLE_FIRST,       /* at the end of every stack */
    ROLE_NEW_THREAD,  /* a new thread begins in it, with the registers of the thread that created
                         it */
    ROLE_NO_WAY_BACK, /* goes from a goroutine's stack to the thread's, and never returns: the
                         goroutine is then no longer this thread's */
    ROLE_INJECTED,    /* a signal handler made it look called where the signal came */
    ROLE_RETURNS_FROM_SIGNAL,
};

static enum role role_of(const char *name)
{
    static const struct {
        const char *name;
        enum role role;
    } roles[] = {
        {"runtime.goexit", ROLE_FIRST},
        {"runtime.mstart", ROLE_FIRST},
        {"runtime.rt0_go", ROLE_FIRST},
        {"runtime.clone", ROLE_NEW_THREAD},
        {"runtime.mcall", ROLE_NO_WAY_BACK},
        {"runtime.morestack", ROLE_NO_WAY_BACK},
        {"runtime.asyncPreempt", ROLE_INJECTED},
        {"runtime.debugCallV2", ROLE_INJECTED},
        {"runtime.sigpanic", ROLE_INJECTED},
        {"runtime.sigpanic0", ROLE_INJECTED},
        {"runtime.sigreturn", ROLE_RETURNS_FROM_SIGNAL},
        {"runtime.sigreturn__sigaction", ROLE_RETURNS_FROM_SIGNAL},
    };
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (strcmp(name, roles[i].name) == 0)
            return roles[i].role;
    }
    return ROLE_NONE;
}

/* Whether `address` is a call's last byte, as it is in a caller. Any other address is where a
 * thread was found. */
static bool is_call(const struct pclntab *table, uint64_t address)
{
    uint8_t before[CALL_BYTES_MAX];
    uint64_t target, next = address + 1;
    return module_read(table->module, next - sizeof before, before, sizeof before) &&
           call_before(before, next, &target) != CALL_NONE;
}

static bool code_is(const struct pclntab *table, uint64_t address, const void *code, size_t bytes)
{
    uint8_t there[16];
    return module_read(table->module, address, there, bytes) && memcmp(there, code, bytes) == 0;
}

/* The rule of a function without anything special. */
static struct rule rule_of_frame(uint32_t frame_bytes, bool is_at_call)
{
    struct rule rule = {
        .kind = RULE_CALLER,
        .has_frame_pointer = true,
        .has_caller = true, /* only the functions at the end of every stack have none */
        .cfa = {RSP, false, (int32_t)frame_bytes + 8},
        .return_address = {RULE_CFA, true, -8},
        .frame_pointer = {RBP, false, 0},
        .base_pointer_offset = RULE_BASE_POINTER_LOST, /* Go's functions preserve no register */
    };
    if (frame_bytes) {
        rule.frame_pointer = (struct rule_place){RULE_CFA, true, -16};
        rule.may_not_be_saved = !is_at_call;
    }
    return rule;
}

/* Whether the register is not set yet, or not any more, so that the stack pointer is as it was:
 * within a few bytes of where it is first moved, or where the frame is given back. */
static bool is_at_edge(const struct pclntab *table, const struct pclntab_function *function,
                       uint64_t address)
{
    static const uint8_t add_8[] = {0x48, 0x83, 0xc4}, add_32[] = {0x48, 0x81, 0xc4};
    return address - function->start < 14 || code_is(table, address, add_8, sizeof add_8) ||
           code_is(table, address, add_32, sizeof add_32);
}

/* For a function that sets the stack pointer. */
static void allow_other_stack(const struct pclntab *table, const struct pclntab_function *function,
                              uint64_t address, uint32_t frame_bytes, struct rule *rule)
{
    static const uint8_t push_rbp[] = {0x55}, sub_rsp[] = {0x48, 0x83, 0xec};
    bool has_frame = frame_bytes && (code_is(table, function->start, push_rbp, sizeof push_rbp) ||
                                     code_is(table, function->start, sub_rsp, sizeof sub_rsp));
    rule->may_leave_stack = true;
    if (!has_frame) {
        rule->kind = RULE_LEFT_STACK;
        rule->frame_pointer = (struct rule_place){RBP, false, 0};
    } else if (is_call(table, address) || !is_at_edge(table, function, address)) {
        rule->cfa = (struct rule_place){RBP, false, 16};
        rule->may_not_be_saved = false;
    }
}

/* On the thread's own stack it is the first frame. */
static void end_at_no_way_back(const struct pclntab *table, uint64_t address, struct rule *rule)
{
    /* Its stack pointer is set right before a call, or before mov $0, %rbp and a call. */
    static const uint8_t call[] = {0xe8}, clear_rbp[] = {0x48, 0xc7, 0xc5};
    if (is_call(table, address) || code_is(table, address, call, sizeof call) ||
        code_is(table, address, clear_rbp, sizeof clear_rbp))
        *rule = (struct rule){.kind = RULE_FIRST_FRAME};
}

static bool make(const struct pclntab *table, const struct pclntab_function *function,
                 uint64_t address, bool is_at_call, struct rule *ret_rule)
{
    char name[PCLNTAB_STRING_MAX];
    uint32_t frame_bytes;
    if (!pclntab_name(table, function->name, name))
        return false;
    enum role role = role_of(name);
    if (role == ROLE_RETURNS_FROM_SIGNAL || role == ROLE_FIRST) {
        bool is_first = role == ROLE_FIRST;
        *ret_rule = (struct rule){.kind = is_first ? RULE_FIRST_FRAME : RULE_SIGNAL_FRAME};
        return true;
    }
    if (!pclntab_frame_bytes(table, function, address, &frame_bytes) || frame_bytes > INT32_MAX - 8)
        return false;
    *ret_rule = rule_of_frame(frame_bytes, is_at_call);
    ret_rule->caller_is_exact = role == ROLE_INJECTED;
    if (function->sets_stack_pointer && strcmp(name, "runtime.morestack") != 0)
        allow_other_stack(table, function, address, frame_bytes, ret_rule);
    if (role == ROLE_NEW_THREAD)
        ret_rule->kind = RULE_NEW_STACK;
    if (role == ROLE_NO_WAY_BACK)
        end_at_no_way_back(table, address, ret_rule);
    return true;
}

bool go_rule_make(const struct pclntab *table, uint64_t address, struct rule *ret_rule)
{
    struct pclntab_function function;
    if (!pclntab_find(table, address, &function))
        return false;
    /* Signal handlers return to a function's start; callbacks from C return to the start of a
     * function that only marks the stack which was left. What lies before is another function's
     * last byte, or padding. */
    bool is_at_call = is_call(table, address);
    bool is_before_start = address + 1 == function.end && !is_at_call;
    if (!make(table, &function, address, is_at_call, ret_rule)) {
        if (!is_before_start)
            return false;
        *ret_rule = (struct rule){.kind = RULE_NONE};
    }
    ret_rule->is_no_call = is_before_start;
    return true;
}
