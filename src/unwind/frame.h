/* One frame of a stack that is being unwound, and the ways from it to its caller. */
#ifndef FGPROF_UNWIND_FRAME_H
#define FGPROF_UNWIND_FRAME_H

#include "unwind/walk.h"

/* A frame on the way. All registers are known in the first frame and in one that a signal
 * interrupted; of its callers, those that no frame in between has saved or changed. */
struct frame {
    uint64_t pc, sp, frame_pointer;
    bool has_frame_pointer;
    bool sp_is_least; /* it may be higher: the callee's frame goes on above its frame record */
    /* Seldom needed, so it is read only on demand: from base_pointer_at, where it was saved, if
     * that is not 0; else base_pointer is its value, if that is known. */
    bool has_base_pointer;
    uint64_t base_pointer_at, base_pointer;
    bool is_exact;                     /* pc is where the frame is, not where it will return to */
    unsigned stacks_left;              /* how often the walk went on to another stack */
    const struct registers *registers; /* NULL: only the above are known, and: */
    const struct registers *kept_registers;
    uint64_t kept; /* a bit for each of these that has the same value here */
    bool has_link; /* the link register is known, though it is not among these: */
    uint64_t link;
};

enum step {
    STEP_TAKEN,
    STEP_WHOLE, /* there is no caller */
    STEP_CUT,   /* stack->cut says why */
};

/* More stacks than a thread uses at a time; damaged ones may lead in a circle. */
#define STACKS_LEFT_MAX 8

struct frame frame_of(const struct registers *registers);

/* Makes the frame its caller's. `kept` has a bit for each other register that is the same there. */
void frame_set(struct frame *frame, uint64_t pc, uint64_t sp, bool has_frame_pointer,
               uint64_t frame_pointer, uint64_t kept);

static inline enum step frame_cut(struct walk *walk, enum stack_cut why)
{
    walk->stack->cut = why;
    return STEP_CUT;
}

/* ---- By a rule: frame_rules.c ---- */

/* Applies RULE_CALLER. */
enum step frame_step_to_caller(struct walk *walk, struct frame *frame, const struct rule *rule);

/* The same for a function that may have switched stacks, if the caller that it leads to calls that
 * function directly. Else the rule was wrong, and the stack is cut. */
enum step frame_step_to_caller_of(struct walk *walk, struct frame *frame,
                                  const struct mapping *mapping, const struct rule *rule);

/* Finds the caller of a Go function that has no frame, in a sleeping thread whose link register is
 * not known. The word at the stack pointer is the caller's own return address; the call before that
 * address names the caller, and its code is searched for a call of this function. If there are
 * several, the first is taken. */
enum step frame_step_without_link(struct walk *walk, struct frame *frame,
                                  const struct mapping *mapping);

/* Goes from the kernel's trampoline to the code that the signal interrupted. All registers of that
 * code are known, and go to *interrupted. */
enum step frame_step_to_interrupted(struct walk *walk, struct frame *frame,
                                    struct registers *interrupted);

/* Applies RULE_RUNS_C. */
enum step frame_step_from_c(struct walk *walk, struct frame *frame, const struct mapping *mapping,
                            const struct rule *rule);

/* Applies RULE_NEW_STACK or RULE_LEFT_STACK: the function is usually on another stack than its
 * caller, but it may still be on its way there, or be back already. */
enum step frame_step_to_left_stack(struct walk *walk, struct frame *frame,
                                   const struct mapping *mapping, const struct rule *rule);

/* ---- If nothing else works, by what the stack and the code look like: frame_guesses.c ---- */

/* Whether a frame may return to `address`: it must be in code, after a call. Code that no file
 * holds, such as a JIT's, can't be checked. */
bool frame_follows_call(const struct walk *walk, uint64_t address);

/* For code without call frame information: the frame pointer points to where the caller's was
 * saved, and the return address is next to it. Believed only if all of that fits. */
enum step frame_step_by_pointer(struct walk *walk, struct frame *frame);

/* Applies RULE_UNKNOWN_FRAME: only the end of a stack can be told. */
enum step frame_step_by_nothing(struct walk *walk, const struct frame *frame);

/* Applies a rule that was read from the code. Believed only if it leads to an address after a call,
 * or out of a handler. */
enum step frame_step_by_code(struct walk *walk, struct frame *frame, const struct rule *rule);

/* The code jumped to, or called, an address without code (such as a null pointer), and a signal
 * handler finds it there. The caller's address is still the last that was pushed. */
enum step frame_step_from_no_code(struct walk *walk, struct frame *frame);

/* At an instruction that returns, the return address is at the stack pointer and the caller's
 * registers are restored, whatever the rule says: hand-written code and compilers forget to say
 * what holds once a function's end has begun. Returns false if that leads nowhere. */
bool frame_step_by_return(struct walk *walk, struct frame *frame);

#endif
