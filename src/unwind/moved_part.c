#include "unwind/moved_part.h"
#include "unwind/code/calls.h"

#include <stdlib.h>

/* How much of a function or a part is searched for jumps, and how many of these, to elsewhere in
 * the module, are looked at. A function with a moved part mostly jumps to that first. */
#define CODE_BYTES_MAX (256u << 10)
#define JUMPS_MAX 256

/* Reads where the caller's frame is at an address. Returns false if that is not known. */
static bool read_cfa(struct rule_tables *tables, struct module *module, uint64_t address,
                     struct rule_place *ret_cfa)
{
    const struct rule *rule = rule_tables_find(tables, module, address);
    if (!rule || rule->kind != RULE_CALLER || rule->cfa_scale)
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

/* The bytes found need not be an instruction, so the target is checked. */
static uint64_t find_by_jumps(struct rule_tables *tables, struct module *module,
                              const struct module_part *function, const uint8_t *code, size_t bytes)
{
    struct rule_place entry;
    if (!read_cfa(tables, module, function->address, &entry))
        return 0;
    unsigned jumps = 0;
    for (size_t at = 0; at + JUMP_BYTES <= bytes && jumps < JUMPS_MAX; at++) {
        uint64_t target;
        if (!jump_is_at(code + at, function->address + at, &target) ||
            target - function->address < function->bytes || !module_has_memory(module, target))
            continue;
        jumps++;
        uint64_t start = rule_tables_function(tables, module, target);
        if (start && start != function->address && !begins_as(tables, module, start, &entry))
            return start;
    }
    return 0;
}

uint64_t moved_part_find(struct rule_tables *tables, struct module *module,
                         const struct module_part *function)
{
    size_t bytes = function->bytes < CODE_BYTES_MAX ? function->bytes : CODE_BYTES_MAX;
    uint8_t *code = malloc(bytes + 1);
    uint64_t found = 0;
    if (code && module_read(module, function->address, code, bytes))
        found = find_by_jumps(tables, module, function, code, bytes);
    free(code);
    return found;
}

/* A jump leaves the frame as it is. */
static bool have_one_frame(struct rule_tables *tables, struct module *module, uint64_t from,
                           uint64_t to)
{
    struct rule_place before, after;
    return read_cfa(tables, module, from, &before) && read_cfa(tables, module, to, &after) &&
           before.register_number == after.register_number &&
           before.is_in_memory == after.is_in_memory && before.offset == after.offset;
}

/* Whether the part begins with a frame, unlike the function. */
static bool is_moved(struct rule_tables *tables, struct module *module,
                     const struct function_range *part, uint64_t function)
{
    struct rule_place entry;
    return read_cfa(tables, module, function, &entry) &&
           !begins_as(tables, module, part->start, &entry);
}

/* The one function into which all jumps of the part lead. Its code has JUMP_BYTES of zeros behind
 * it. */
static uint64_t find_by_jumps_back(struct rule_tables *tables, struct module *module,
                                   const struct function_range *part, const uint8_t *code,
                                   size_t bytes)
{
    uint64_t found = 0;
    unsigned jumps = 0;
    for (size_t at = 0; at < bytes && jumps < JUMPS_MAX; at++) {
        uint64_t target, start, from = part->start + at;
        if (!jump_is_at(code + at, from, &target) || (target >= part->start && target < part->end))
            continue;
        jumps++;
        start = rule_tables_function(tables, module, target);
        if (!start || start == target || !have_one_frame(tables, module, from, target))
            continue;
        if (found ? found != start : !is_moved(tables, module, part, start))
            return 0;
        found = start;
    }
    return found;
}

uint64_t moved_part_function(struct rule_tables *tables, struct module *module,
                             const struct function_range *part)
{
    uint64_t part_bytes = part->end - part->start, function = 0;
    size_t bytes = part_bytes < CODE_BYTES_MAX ? (size_t)part_bytes : CODE_BYTES_MAX;
    uint8_t *code = calloc(1, bytes + JUMP_BYTES);
    if (code && module_read(module, part->start, code, bytes))
        function = find_by_jumps_back(tables, module, part, code, bytes);
    free(code);
    return function;
}
