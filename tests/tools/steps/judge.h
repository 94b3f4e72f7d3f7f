/* Compares an unwound stack with the true one. */
#ifndef FGPROF_STEPS_JUDGE_H
#define FGPROF_STEPS_JUDGE_H

#include "observe/snapshot.h"
#include "shadow.h"
#include "tally.h"

struct judged {
    const struct shadow_chain *chain;
    const struct snapshot *snapshot;
    const struct stack *stack; /* what unwinding made of the snapshot */
    struct space *space;
};

/* Returns in *ret_depth how many frames are right, from the leaf on. Where the true stack is known
 * only so far, no further. */
enum verdict judge(const struct judged *judged, size_t *ret_depth);

/* Fills in where `difference` is and what was found there. */
void judge_describe(const struct judged *judged, size_t depth, struct difference *difference);

#endif
