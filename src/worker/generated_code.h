/* Names of the code that a program generates, from what the program writes about it while it is
 * being sampled.
 *
 * Nothing is read until a stack has an address in code that is in no file. */
#ifndef FGPROF_WORKER_GENERATED_CODE_H
#define FGPROF_WORKER_GENERATED_CODE_H

#include "base/throttle.h"
#include "jit/files.h"
#include "jit/source.h"
#include "observe/observation.h"
#include "unwind/unwind.h"
#include "worker/results.h"

/* Zeroed at first. */
struct generated_code {
    bool has_owner, is_refused;
    struct jit_owner owner;
    struct jit_source map, dump;
    struct throttle reading;
};

/* All functions return 0 or -ENOMEM. `observation` is one of the program, and `space` its space. */

/* Notes the addresses of a new stack that are in generated code. */
int generated_note(struct generated_code *generated, struct space *space,
                   const struct observation *observation, const struct stack *stack);

/* Learns how to unwind from an address of generated code, if it is in a function whose start is
 * known by now. *ret_has_learnt: something new was learned. */
int generated_learn(const struct generated_code *generated, struct rule_tables *rules,
                    const struct space *space, const struct program *program, uint64_t address,
                    bool *ret_has_learnt);

/* Reads what the program has written since the last time, if a reading is due. If it replaces
 * sampled code, *space becomes a new space. */
int generated_update(struct generated_code *generated, struct rule_tables *rules,
                     struct results *results, const struct observation *observation,
                     struct space **space);

/* The program, or sampling, has ended: reads everything that is left, and settles the names.
 * `space` may be NULL. */
int generated_finish(struct generated_code *generated, struct rule_tables *rules,
                     struct results *results, struct space *space);

#endif
