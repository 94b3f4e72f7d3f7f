/* One frame of a stack that is being unwound, and the ways from it to its caller. */
#ifndef FGPROF_UNWIND_FRAME_H
#define FGPROF_UNWIND_FRAME_H

#include "unwind/walk.h"

/* A frame on the way. The other registers are known only in the first one, and where a signal came.
 */
struct frame {
    uint64_t pc, sp, frame_pointer;
    bool has_frame_pointer;
    /* It is seldom asked for, and so is read only then: where it was saved, if that is not 0; its
     * value, if that is known. */
    bool has_base_pointer;
    uint64_t base_pointer_at, base_pointer;
    bool is_exact;        /* the program counter is where it is, not where it will return to */
    unsigned stacks_left; /* how often the way went on to another stack */
    const struct registers *registers; /* NULL: only the above are known */
};

enum step {
    STEP_TAKEN,
    STEP_WHOLE,   /* there is no caller */
    STEP_CUT,     /* stack->cut says why */
    STEP_COMPLEX, /* rules don't do */
};

/* More stacks than a thread uses at a time; damaged ones may lead round in a circle. */
#define STACKS_LEFT_MAX 8

struct frame frame_of(const struct registers *registers);

/* Makes it its caller's, of which no other registers are known. */
void frame_set(struct frame *frame, uint64_t pc, uint64_t sp, bool has_frame_pointer,
               uint64_t frame_pointer);

static inline enum step frame_cut(struct walk *walk, enum stack_cut why)
{
    walk->stack->cut = why;
    return STEP_CUT;
}

/* ---- By a rule: frame_rules.c ---- */

/* By RULE_CALLER. */
enum step frame_step_to_caller(struct walk *walk, struct frame *frame, const struct rule *rule);

/* From the kernel's trampoline to what the signal interrupted: all its registers are known, and go
 * to *interrupted. */
enum step frame_step_to_interrupted(struct walk *walk, struct frame *frame,
                                    struct registers *interrupted);

/* By RULE_NEW_STACK or RULE_LEFT_STACK: from a function that is on another stack than its caller,
 * as a rule; but it may still be on its way there, or be back already. */
enum step frame_step_to_left_stack(struct walk *walk, struct rule_tables *tables,
                                   struct frame *frame, const struct mapping *mapping,
                                   const struct rule *rule);

/* ---- Where nothing tells, by what the stack and the code look like: frame_guesses.c ---- */

/* Whether a frame may return to `address`: into code, behind a call. What no file holds, a JIT's
 * code, can't be looked at. */
bool frame_follows_call(const struct walk *walk, uint64_t address);

/* In code without call frame information: the frame pointer points to where the caller's was saved,
 * and the return address is next to it. It is believed where all of it fits. */
enum step frame_step_by_pointer(struct walk *walk, struct frame *frame);

/* By a rule that was read from the code, which is believed where it leads behind a call, or out of
 * a handler. */
enum step frame_step_by_code(struct walk *walk, struct frame *frame, const struct rule *rule);

/* The code jumped, or called, to where there is none: a signal handler finds it there (a null
 * pointer was called), and the caller's address is still the last that was pushed. */
enum step frame_step_from_no_code(struct walk *walk, struct frame *frame);

/* Where a function returns, its return address is at the stack pointer, and its caller's registers
 * are restored, whatever is said: hand-written code and compilers forget to say how it is after a
 * function's end has begun. Returns false where that leads nowhere. */
bool frame_step_by_return(struct walk *walk, struct frame *frame);

#endif
