/* Compares an unwound stack with the true one. */
#ifndef FGPROF_STEPS_JUDGE_H
#define FGPROF_STEPS_JUDGE_H

#include "observe/snapshot.h"
#include "shadow.h"
#include "tally.h"

struct judged {
    const struct shadow_chain *chain;
    const struct snapshot *snapshot;
    const struct stack *stack; /* the result of unwinding the snapshot */
    struct space *space;
};

/* Sets *ret_depth to the number of correct frames, from the leaf on. Judges only as far as the true
 * stack is known. */
enum verdict judge(const struct judged *judged, size_t *ret_depth);

/* Sets where `difference` is, and what was found there. */
void judge_describe(const struct judged *judged, size_t depth, struct difference *difference);

#endif
