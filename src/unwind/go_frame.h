/* The layout of Go's frames on each architecture; their sizes are in Go's function table. The build
 * compiles one of x86_64/go_frame.c and aarch64/go_frame.c. */
#ifndef FGPROF_UNWIND_GO_FRAME_H
#define FGPROF_UNWIND_GO_FRAME_H

#include "unwind/rule.h"
#include "elf/go/pclntab.h"

/* An address in a function. */
struct go_place {
    const struct pclntab *table;
    const struct pclntab_function *function;
    uint64_t address;
    bool is_at_call;      /* it is a call's last byte, as in a caller; else a thread is there */
    bool was_injected;    /* a signal handler made the function look called */
    bool runs_c;          /* the function calls C on the thread's own stack */
    uint32_t frame_bytes; /* there, by the table */
};

#define GO_FRAME_BYTES_MAX (INT32_MAX / 4)

/* The rule of an ordinary function. */
struct rule go_frame_rule(const struct go_place *place);

/* ---- Adapt that rule to functions that are not ordinary ---- */

/* A function that sets the stack pointer: its caller may be on another stack. */
void go_frame_allow_other_stack(const struct go_place *place, struct rule *rule);

/* A function that a signal handler made look called. */
void go_frame_inject(struct rule *rule);

/* The function in which a new thread begins, with the registers of the one that created it. */
void go_frame_begin_thread(const struct go_place *place, struct rule *rule);

/* A function that switches to the thread's own stack for good, and is then the first frame there.
 */
void go_frame_end(const struct go_place *place, struct rule *rule);

/* ---- Helper, in go_rule.c ---- */

/* Whether `address` is a call's last byte. */
bool go_code_is_call(const struct pclntab *table, uint64_t address);

#endif
