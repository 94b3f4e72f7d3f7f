/* Turns a snapshot into a stack. Reads nothing but the snapshot and the files of the address
 * space. */
#ifndef FGPROF_UNWIND_UNWIND_H
#define FGPROF_UNWIND_UNWIND_H

#include "unwind/stack.h"
#include "mapping/space.h"
#include "observe/snapshot.h"

struct rule_tables;

/* Unwinds `snapshot`, taken in `space`, into `stack`, no deeper than `max_depth` frames. What it
 * learns about code stays in `tables`, which serve many: each module and each space must have its
 * own number. Returns 0 or -ENOMEM. */
int unwind_snapshot(struct rule_tables *tables, struct space *space,
                    const struct snapshot *snapshot, size_t max_depth, struct stack *stack,
                    struct unwind_hints *ret_hints);

#endif
