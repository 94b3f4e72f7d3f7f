#include "unwind/moved_part.h"
#include "unwind/code/calls.h"

#include <stdlib.h>

/* How much of a function is searched for jumps. */
#define CODE_BYTES_MAX (256u << 10)

/* Reads where the caller's frame is at an address. Returns false if that is not known. */
static bool read_cfa(struct rule_tables *tables, struct module *module, uint64_t address,
                     struct rule_place *ret_cfa)
{
    const struct rule *rule = rule_tables_find(tables, module, address);
    if (!rule || rule->kind != RULE_CALLER)
        return false;
    *ret_cfa = rule->cfa;
    return true;
}

/* Functions begin without a frame. A moved part is jumped to from within its function, which has
 * one by then. */
static bool begins_as(struct rule_tables *tables, struct module *module, uint64_t address,
                      const struct rule_place *entry)
{
    struct rule_place cfa;
    return !read_cfa(tables, module, address, &cfa) ||
           (cfa.register_number == entry->register_number && cfa.offset == entry->offset);
}

/* What is found at any byte need not be an instruction, so where it leads to is checked. */
static uint64_t find_by_jumps(struct rule_tables *tables, struct module *module,
                              const struct dynamic_symbol *function, const uint8_t *code,
                              size_t bytes)
{
    struct rule_place entry;
    if (!read_cfa(tables, module, function->value, &entry))
        return 0;
    for (size_t at = 0; at + JUMP_BYTES <= bytes; at++) {
        uint64_t target;
        if (!jump_is_at(code + at, function->value + at, &target) ||
            target - function->value < function->bytes)
            continue;
        uint64_t start = rule_tables_function(tables, module, target);
        if (start && start != function->value && !begins_as(tables, module, start, &entry))
            return start;
    }
    return 0;
}

uint64_t moved_part_find(struct rule_tables *tables, struct module *module,
                         const struct dynamic_symbol *function)
{
    size_t bytes = function->bytes < CODE_BYTES_MAX ? function->bytes : CODE_BYTES_MAX;
    uint8_t *code = malloc(bytes + 1);
    uint64_t found = 0;
    if (code && module_read(module, function->value, code, bytes))
        found = find_by_jumps(tables, module, function, code, bytes);
    free(code);
    return found;
}
