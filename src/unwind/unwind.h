/* Turns a snapshot into a stack. Reads nothing but the snapshot and the files of the address
 * space. */
#ifndef FGPROF_UNWIND_UNWIND_H
#define FGPROF_UNWIND_UNWIND_H

#include "unwind/stack.h"
#include "mapping/space.h"
#include "observe/snapshot.h"

/* An unwinder keeps what it has learnt about code: rules by module, and by space for generated
 * code.
 */
struct unwinder;
struct lookups;
struct rule_tables;

/* `lookups` look up what is not known yet of a module's code, and must outlive it (see lookup.h);
 * NULL: that is done in this process. Returns 0 or -ENOMEM. */
int unwinder_new(struct lookups *lookups, struct unwinder **ret_unwinder);
void unwinder_free(struct unwinder *unwinder);

struct rule_tables *unwinder_rules(struct unwinder *unwinder);

/* Unwinds `snapshot`, taken in `space`, into `stack`, no deeper than `max_depth` frames. Each
 * module and each space must have its own number. Returns 0 or -ENOMEM. */
int unwind_snapshot(struct unwinder *unwinder, struct space *space, const struct snapshot *snapshot,
                    size_t max_depth, struct stack *stack, struct unwind_hints *ret_hints);

/* Learns where the return address is at an address of generated code in the space, from the machine
 * code of its function, which begins at `function`. Until a function has set up its frame pointer,
 * or if it never does, the frame pointer would lead to its caller's caller. Returns 0 or
 * -ENOMEM. */
int unwinder_learn(struct unwinder *unwinder, const struct space *space, uint64_t address,
                   uint64_t function, const uint8_t *code, size_t code_bytes);

/* Forgets the module, which is about to be closed. */
void unwinder_forget_module(struct unwinder *unwinder, const struct module *module);

/* Forgets what unwinder_learn learned about the space, whose code has been replaced, or which its
 * program has left. */
void unwinder_forget(struct unwinder *unwinder, const struct space *space);

#endif
