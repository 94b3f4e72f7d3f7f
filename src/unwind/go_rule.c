/* The table marks functions that set the stack pointer: in Go's runtime, those that switch stacks
 * (asm_*.s, sys_linux_*.s). */
#include "unwind/go_rule.h"
#include "unwind/code/calls.h"
#include "unwind/go_frame.h"

#include <string.h>

enum role {
    ROLE_NONE,
    ROLE_FIRST,       /* at the end of every stack */
    ROLE_NEW_THREAD,  /* a new thread begins in it, with the registers of the thread that created
                         it */
    ROLE_NO_WAY_BACK, /* goes from a goroutine's stack to the thread's, and never returns: the
                         goroutine is then no longer this thread's */
    ROLE_INJECTED,    /* a signal handler made it look called where the signal came */
    ROLE_RUNS_C,      /* calls C on the thread's own stack */
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
        {"runtime.asmcgocall", ROLE_RUNS_C},
        {"runtime.sigreturn", ROLE_RETURNS_FROM_SIGNAL},
        {"runtime.sigreturn__sigaction", ROLE_RETURNS_FROM_SIGNAL},
    };
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (strcmp(name, roles[i].name) == 0)
            return roles[i].role;
    }
    return ROLE_NONE;
}

bool go_code_is_call(const struct pclntab *table, uint64_t address)
{
    uint8_t before[CALL_BYTES_MAX];
    uint64_t target, next = address + 1;
    return next % table->quantum == 0 &&
           module_read(table->module, next - sizeof before, before, sizeof before) &&
           call_before(before, next, &target) != CALL_NONE;
}

static bool make(struct go_place *place, struct rule *ret_rule)
{
    char name[PCLNTAB_STRING_MAX];
    if (!pclntab_name(place->table, place->function->name, name))
        return false;
    enum role role = role_of(name);
    if (role == ROLE_RETURNS_FROM_SIGNAL || role == ROLE_FIRST) {
        bool is_first = role == ROLE_FIRST;
        *ret_rule = (struct rule){.kind = is_first ? RULE_FIRST_FRAME : RULE_SIGNAL_FRAME};
        return true;
    }
    if (!pclntab_frame_bytes(place->table, place->function, place->address, &place->frame_bytes) ||
        place->frame_bytes > GO_FRAME_BYTES_MAX) {
        /* At its end it pops what the handler pushed, too: its frame's size is below 0 there. */
        *ret_rule = (struct rule){.kind = RULE_ON_THE_MOVE};
        return role == ROLE_INJECTED;
    }
    place->was_injected = role == ROLE_INJECTED;
    place->runs_c = role == ROLE_RUNS_C;
    *ret_rule = go_frame_rule(place);
    if (place->function->sets_stack_pointer && strcmp(name, "runtime.morestack") != 0)
        go_frame_allow_other_stack(place, ret_rule);
    if (place->was_injected && ret_rule->kind == RULE_CALLER)
        go_frame_inject(ret_rule);
    if (role == ROLE_NEW_THREAD)
        go_frame_begin_thread(place, ret_rule);
    if (role == ROLE_NO_WAY_BACK)
        go_frame_end(place, ret_rule);
    return true;
}

bool go_rule_make(const struct pclntab *table, uint64_t address, struct rule *ret_rule)
{
    struct pclntab_function function;
    if (!pclntab_find(table, address, &function))
        return false;
    struct go_place place = {.table = table,
                             .function = &function,
                             .address = address,
                             .is_at_call = go_code_is_call(table, address)};
    /* Signal handlers return to a function's start; callbacks from C return to the start of a
     * function that only marks the stack which was left. What lies before is another function's
     * last byte, or padding. */
    bool is_before_start = address + 1 == function.end && !place.is_at_call;
    if (!make(&place, ret_rule)) {
        if (!is_before_start)
            return false;
        *ret_rule = (struct rule){.kind = RULE_NONE};
    }
    ret_rule->is_no_call = is_before_start;
    return true;
}
