#include "unwind/left_stack.h"
#include "unwind/code/calls.h"
#include "unwind/code_address.h"

/* How far below the frame pointer to search: no function of Go's runtime that calls another on its
 * thread's stack has so large a frame. */
#define SEARCH_BYTES 4096u

/* Whether the code that returns to `address` was called directly; if so, sets *ret_target. */
static bool called_directly(struct walk *walk, uint64_t address, uint64_t *ret_target)
{
    uint8_t before[CALL_BYTES_MAX];
    return space_read_file(walk->space, address - sizeof before, before, sizeof before) &&
           call_before(before, address, ret_target) == CALL_DIRECT;
}

static bool read_word(const struct walk *walk, uint64_t address, uint64_t *ret_word)
{
    return walk_read_copy(&walk->snapshot->stack, address, ret_word) ||
           walk_read_copy(&walk->snapshot->other_stack, address, ret_word);
}

/* The start of the function that the word at `place` returns to, if that is after a call of
 * `left->function` and in a frame that ends at the frame pointer; else 0. */
static uint64_t caller_at(struct walk *walk, struct rule_tables *tables,
                          const struct left_stack *left, uint64_t place)
{
    uint64_t word, target;
    if (!read_word(walk, place, &word))
        return 0;
    const struct mapping *mapping = space_find(walk->space, address_of_call(word));
    if (!mapping || !mapping->has_bias || !called_directly(walk, word, &target) ||
        target != left->function)
        return 0;
    uint64_t address = address_of_call(word) - mapping->bias;
    const struct rule *rule = rule_tables_find(tables, mapping->module, address);
    if (!rule || rule->kind != RULE_CALLER || rule->cfa.is_in_memory ||
        rule->cfa.register_number != architecture.sp ||
        place + 8 + (uint64_t)(int64_t)rule->cfa.offset != left->frame_pointer + 16)
        return 0;
    return rule_tables_function(tables, mapping->module, address) + mapping->bias;
}

bool left_stack_fits(struct walk *walk, struct rule_tables *tables, const struct left_stack *left,
                     uint64_t place)
{
    return caller_at(walk, tables, left, place) != 0;
}

bool left_stack_find(struct walk *walk, struct rule_tables *tables, const struct left_stack *left,
                     uint64_t *ret_place)
{
    uint64_t caller_return, called = 0;
    /* The caller's own return address usually says which function the caller is. */
    bool is_known = read_word(walk, left->frame_pointer + 8, &caller_return) &&
                    called_directly(walk, caller_return, &called);
    unsigned count = 0;
    for (uint64_t bytes = 8; bytes < SEARCH_BYTES; bytes += 8) {
        uint64_t place = left->frame_pointer - bytes;
        uint64_t caller = caller_at(walk, tables, left, place);
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
