#include "judge.h"

#include <string.h>

/* The frame at `depth` of the true stack; false if it is unknown, or there is none. */
static bool true_frame(const struct judged *judged, size_t depth, uint64_t *ret_address)
{
    const struct shadow_chain *chain = judged->chain;
    if (depth > chain->count)
        return false;
    *ret_address = registers_pc(&judged->snapshot->registers);
    if (depth) {
        const struct shadow_entry *entry = &chain->entries[chain->count - depth];
        *ret_address = entry->return_address - !entry->is_exact;
    }
    return true;
}

/* Whether the return address of the frame below is no longer where the call put it, because it was
 * overwritten or popped. */
static bool is_in_doubt(const struct judged *judged, size_t depth)
{
    const struct shadow_chain *chain = judged->chain;
    const struct stack_copy *copy = &judged->snapshot->stack;
    uint64_t word;
    if (!depth || depth > chain->count)
        return false;
    const struct shadow_entry *entry = &chain->entries[chain->count - depth];
    if (entry->is_exact)
        return false;
    bool is_on_this_stack = chain->count - depth >= chain->regions[chain->region_count - 1].first;
    if (is_on_this_stack && entry->slot < registers_sp(&judged->snapshot->registers))
        return true;
    uint64_t at = entry->slot - copy->address;
    bool is_on_stack = architecture.link == REGISTERS_MAX;
    if (!is_on_stack || at > copy->bytes || sizeof word > copy->bytes - at)
        return false;
    memcpy(&word, copy->memory + at, sizeof word);
    return word != entry->return_address;
}

enum verdict judge(const struct judged *judged, size_t *ret_depth)
{
    const struct stack *stack = judged->stack;
    uint64_t expected, next;
    size_t depth = 0;
    while (depth < stack->depth && true_frame(judged, depth, &expected) &&
           stack->addresses[depth] == expected)
        depth++;
    *ret_depth = depth;
    bool has_more = true_frame(judged, depth, &expected);
    if (!has_more && (!judged->chain->is_whole || depth == stack->depth))
        return VERDICT_EQUAL;
    if (is_in_doubt(judged, depth))
        return VERDICT_DOUBT;
    if (depth == stack->depth)
        return stack->cut == STACK_WHOLE ? VERDICT_WRONG : VERDICT_CUT;
    for (size_t later = depth + 1; true_frame(judged, later, &next); later++) {
        if (stack->addresses[depth] == next)
            return VERDICT_MISSING;
    }
    return VERDICT_WRONG;
}

void judge_describe(const struct judged *judged, size_t depth, struct difference *difference)
{
    uint64_t address = 0;
    struct space *space = judged->space;
    true_frame(judged, depth ? depth - 1 : 0, &address);
    difference->depth = depth ? depth - 1 : 0;
    difference->from = tally_spot(space, address);
    true_frame(judged, 0, &address);
    difference->leaf = tally_spot(space, address);
    for (size_t i = 0; i < SPOTS_SHOWN && true_frame(judged, depth + i, &address); i++)
        difference->expected[difference->expected_count++] = tally_spot(space, address);
    for (size_t i = depth; i < depth + SPOTS_SHOWN && i < judged->stack->depth; i++)
        difference->found[difference->found_count++] =
            tally_spot(space, judged->stack->addresses[i]);
}
