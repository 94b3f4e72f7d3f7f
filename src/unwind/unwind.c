#include "unwind/unwind.h"
#include "unwind/walk.h"

#include <errno.h>
#include <stdlib.h>

struct unwinder {
    struct rule_tables rules;
};

int unwinder_new(struct lookups *lookups, struct unwinder **ret_unwinder)
{
    struct unwinder *unwinder = calloc(1, sizeof *unwinder);
    if (!unwinder)
        return -ENOMEM;
    unwinder->rules.lookups = lookups;
    *ret_unwinder = unwinder;
    return 0;
}

void unwinder_free(struct unwinder *unwinder)
{
    if (!unwinder)
        return;
    rule_tables_free(&unwinder->rules);
    free(unwinder);
}

struct rule_tables *unwinder_rules(struct unwinder *unwinder)
{
    return &unwinder->rules;
}

int unwind_snapshot(struct unwinder *unwinder, struct space *space, const struct snapshot *snapshot,
                    size_t max_depth, struct stack *stack, struct unwind_hints *ret_hints)
{
    struct walk walk = {.space = space,
                        .snapshot = snapshot,
                        .max_depth = max_depth,
                        .stack = stack,
                        .hints = ret_hints,
                        .code_mask = registers_code_mask()};
    stack->depth = 0;
    stack->cut = STACK_WHOLE;
    *ret_hints = (struct unwind_hints){0};
    return walk_by_rules(&walk, &unwinder->rules);
}

int unwinder_learn(struct unwinder *unwinder, const struct space *space, uint64_t address,
                   uint64_t function, const uint8_t *code, size_t code_bytes)
{
    return rule_tables_learn_generated(&unwinder->rules, space->id, address, function, code,
                                       code_bytes);
}

void unwinder_forget(struct unwinder *unwinder, const struct space *space)
{
    rule_tables_forget_generated(&unwinder->rules, space->id);
}

void unwinder_forget_module(struct unwinder *unwinder, const struct module *module)
{
    rule_tables_forget_module(&unwinder->rules, module);
}
