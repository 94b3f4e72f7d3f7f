/* The way from frame to frame. */
#ifndef FGPROF_UNWIND_WALK_H
#define FGPROF_UNWIND_WALK_H

#include "unwind/rule_tables.h"
#include "unwind/stack.h"
#include "mapping/space.h"
#include "observe/snapshot.h"

/* The input and the results of unwinding. `stack` starts empty and `hints` zeroed. */
struct walk {
    struct rule_tables *tables;
    struct space *space;
    const struct snapshot *snapshot;
    size_t max_depth;
    struct stack *stack;
    struct unwind_hints *hints;
    uint64_t code_mask;         /* see registers_code_mask */
    bool misses_other_register; /* STACK_CUT_NO_REGISTER: than the frame pointer */
};

/* An address further away than this from the copy of a stack is likelier on another stack than on
 * the rest of this one. */
#define WALK_FAR_BYTES (256u << 10)

static inline bool walk_read_copy(const struct stack_copy *copy, uint64_t address,
                                  uint64_t *ret_word)
{
    uint64_t at = address - copy->address;
    if (at >= copy->bytes || sizeof *ret_word > copy->bytes - at)
        return false;
    memcpy(ret_word, copy->memory + at, sizeof *ret_word);
    return true;
}

/* Copies a word of the snapshot's stacks, if it is there. */
static inline bool walk_peek_stack(const struct walk *walk, uint64_t address, uint64_t *ret_word)
{
    return walk_read_copy(&walk->snapshot->stack, address, ret_word) ||
           walk_read_copy(&walk->snapshot->other_stack, address, ret_word);
}

/* Copies a word of the snapshot's stacks. If it is not there, returns false and notes in the hints
 * what would have it: a longer copy, or a copy of another stack. */
static inline bool walk_read_stack(const struct walk *walk, uint64_t address, uint64_t *ret_word)
{
    const struct snapshot *snapshot = walk->snapshot;
    const struct stack_copy *stack = &snapshot->stack;
    struct unwind_hints *hints = walk->hints;
    if (walk_read_copy(stack, address, ret_word)) {
        size_t used = address - stack->address + sizeof *ret_word;
        if (used > hints->stack_bytes_used)
            hints->stack_bytes_used = used;
        return true;
    }
    if (walk_read_copy(&snapshot->other_stack, address, ret_word)) {
        hints->used_other_stack = true;
        return true;
    }
    /* A coroutine's stack may be in one mapping with its thread's. */
    bool is_far = address - stack->address > stack->bytes + WALK_FAR_BYTES;
    bool is_in_stack = address >= stack->address && address < stack->end && !is_far;
    hints->needs_more_stack = is_in_stack || (address >= stack->address && !stack->end_is_known);
    hints->missing_address = is_in_stack ? 0 : address;
    return false;
}

/* Takes a word that is on no stack. If the snapshot does not have it, notes that in the hints. */
static inline bool walk_read_other(const struct walk *walk, uint64_t address, uint64_t *ret_word)
{
    const struct other_word *word = &walk->snapshot->other_word;
    bool is_there = address && word->address == address;
    if (is_there)
        *ret_word = word->value;
    else
        walk->hints->missing_word = address;
    return is_there;
}

/* Unwinds by rules. Returns 0 or -ENOMEM. */
int walk_by_rules(struct walk *walk);

#endif
