/* The two ways from frame to frame. */
#ifndef FGPROF_UNWIND_WALK_H
#define FGPROF_UNWIND_WALK_H

#include "unwind/rule_tables.h"
#include "unwind/unwind.h"

/* What is to be unwound, and what was found out. `stack` is empty at first; `hints` all 0. */
struct walk {
    struct space *space;
    const struct snapshot *snapshot;
    size_t max_depth;
    struct stack *stack;
    struct unwind_hints *hints;
};

/* Copies a word of the snapshot's stack. Where it is not there, returns false and notes in the
 * hints whether a longer copy would have it. */
static inline bool walk_read_stack(const struct walk *walk, uint64_t address, uint64_t *ret_word)
{
    const struct snapshot *snapshot = walk->snapshot;
    uint64_t at = address - snapshot->stack_address;
    if (at < snapshot->stack_bytes && sizeof *ret_word <= snapshot->stack_bytes - at) {
        memcpy(ret_word, snapshot->stack + at, sizeof *ret_word);
        if (at + sizeof *ret_word > walk->hints->stack_bytes_used)
            walk->hints->stack_bytes_used = at + sizeof *ret_word;
        return true;
    }
    if (address >= snapshot->stack_address)
        walk->hints->needs_more_stack =
            address < snapshot->stack_end || !snapshot->stack_end_is_known;
    return false;
}

/* Adds a frame. Returns 0 or -ENOMEM. */
int walk_push(struct walk *walk, uint64_t address);

/* By rules. Returns 0, -ENOTSUP where a frame has none that can be said in their form, or -ENOMEM.
 */
int walk_by_rules(struct walk *walk, struct rule_tables *tables);

/* By libunwind, which keeps what it has learnt about one address space, that of `libunwind`.
 * Returns 0 or -ENOMEM. */
struct libunwind;
int libunwind_new(struct libunwind **ret_libunwind);
void libunwind_free(struct libunwind *libunwind);
int walk_by_libunwind(struct walk *walk, struct libunwind *libunwind);

#endif
