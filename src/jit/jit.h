/* What the code that a process generates was called when it was sampled.
 *
 * Stacks are counted by address within a space, and an address should mean one thing there. The
 * maps that a process writes have no times; their order says that the last entry for an address is
 * what is there now. So each address that was sampled in generated code is noted, with its space,
 * and gets its name as late as possible: an entry that is written after the sample still names it,
 * as runtimes write them late. Only when an entry comes that would call a noted address by another
 * name than it has, are all that have a name settled: they keep it. The code has been replaced, and
 * the caller begins a new space, in which the same address is noted anew. */
#ifndef FGPROF_JIT_JIT_H
#define FGPROF_JIT_JIT_H

#include "jit/code.h"

struct jit_use {
    uint64_t address;
    uint32_t space;
    uint32_t symbol; /* JIT_NO_SYMBOL until settled */
};

struct jit {
    struct jit_code code;
    struct jit_use *uses;
    size_t use_count, use_capacity;
    struct index use_index;
};

/* Returns 0 or -ENOMEM. */
int jit_new(struct jit **ret_jit);
void jit_free(struct jit *jit);

/* Notes that `address` was sampled in the space. Returns 0 or -ENOMEM. */
int jit_note(struct jit *jit, uint32_t space, uint64_t address);

/* Takes in what was announced to jit->code. *ret_is_replaced: it contradicts what a noted address
 * was called, so that what is sampled from now on belongs in a new space. Returns 0 or -ENOMEM. */
int jit_take_in(struct jit *jit, bool *ret_is_replaced);

/* At the end: all that were noted get the names that they have by now. */
void jit_settle(struct jit *jit);

/* A copy that is settled, of what was noted and of the symbols that it needs. Returns 0 or -ENOMEM.
 */
int jit_copy(const struct jit *jit, struct jit **ret_copy);

/* After that: the symbol of a noted address, or NULL. */
const struct jit_symbol *jit_find(const struct jit *jit, uint32_t space, uint64_t address);

#endif
