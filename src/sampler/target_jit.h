/* Names of the code that a target generates: reads what it writes of them while it is sampled.
 *
 * Nothing is read before a stack has an address in code that no file holds. */
#ifndef FGPROF_SAMPLER_TARGET_JIT_H
#define FGPROF_SAMPLER_TARGET_JIT_H

#include "sampler/target.h"

/* Notes the addresses of target->stack, which was not counted before, that are in generated code.
 * Returns 0 or -ENOMEM. */
int target_jit_note(struct target *target);

/* Learns how to unwind from an address of generated code, where that is in a function whose start
 * is known by now. *ret_has_learnt: what was not known before. Returns 0 or -ENOMEM. */
int target_jit_learn(struct target *target, uint64_t address, bool *ret_has_learnt);

/* Takes in what the target has written since the last time, and makes target->space a new one where
 * that replaces what was sampled. Returns 0 or -ENOMEM. */
int target_jit_update(struct target *target);

/* The program of target->space has ended, or sampling: reads all that is left, and settles the
 * names. Returns 0 or -ENOMEM. */
int target_jit_finish(struct target *target);

#endif
