/* The names that generated code had when it was sampled.
 *
 * Stacks are counted by address within a space, so an address should have one meaning there. The
 * maps that a process writes have no times; their order says that the last entry for an address is
 * the current one. So each address that was sampled in generated code is noted, with its space, and
 * named as late as possible: runtimes write entries late, and an entry that is written after the
 * sample still names it. When an entry contradicts the name that a noted address has, the code has
 * been replaced. All noted addresses that have a name are then settled: they keep it. The caller
 * begins a new space, in which the same address is noted again. */
#ifndef FGPROF_JIT_JIT_H
#define FGPROF_JIT_JIT_H

#include "jit/code.h"

struct jit_use {
    uint64_t address;
    uint32_t space;
    uint32_t symbol; /* JIT_NO_SYMBOL until settled */
    bool is_needed;  /* since jit_keep_needed was last called */
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

size_t jit_bytes(const struct jit *jit);

/* Notes that `address` was sampled in the space. Returns 0 or -ENOMEM. */
int jit_note(struct jit *jit, uint32_t space, uint64_t address);

/* Applies what was announced to jit->code. *ret_is_replaced: it contradicts the name of a noted
 * address, so later samples belong in a new space. Returns 0 or -ENOMEM. */
int jit_take_in(struct jit *jit, bool *ret_is_replaced);

/* Says that an address that was noted is still needed. */
void jit_need(struct jit *jit, uint32_t space, uint64_t address);

/* Forgets noted addresses that are not needed, and replaced code that no other address needs.
 * Returns 0 or -ENOMEM. */
int jit_keep_needed(struct jit *jit);

/* At the end: gives all noted addresses the names that they have by now. */
void jit_settle(struct jit *jit);

/* Makes a settled copy of the noted addresses and the symbols that they need. Returns 0 or
 * -ENOMEM. */
int jit_copy(const struct jit *jit, struct jit **ret_copy);

/* The symbol of a noted address among the settled ones, or NULL. */
const struct jit_symbol *jit_find(const struct jit *jit, uint32_t space, uint64_t address);

#endif
