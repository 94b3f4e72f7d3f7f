/* What the frames of Go's functions look like on an architecture, beside their size, which Go's
 * function table has. The build compiles one of x86_64/go_frame.c and aarch64/go_frame.c. */
#ifndef FGPROF_UNWIND_GO_FRAME_H
#define FGPROF_UNWIND_GO_FRAME_H

#include "unwind/rule.h"
#include "elf/go/pclntab.h"

/* An address in a function. */
struct go_place {
    const struct pclntab *table;
    const struct pclntab_function *function;
    uint64_t address;
    bool is_at_call;      /* it is a call's last byte, as it is in a caller. Any other address is
                             where a thread was found. */
    bool was_injected;    /* a signal handler made the function look called */
    uint32_t frame_bytes; /* by the table */
};

#define GO_FRAME_BYTES_MAX (INT32_MAX / 4)

/* The rule of a function without anything special. */
struct rule go_frame_rule(const struct go_place *place);

/* Changes it for a function that sets the stack pointer, */
void go_frame_allow_other_stack(const struct go_place *place, struct rule *rule);

/* for one that a signal handler made look called, */
void go_frame_inject(struct rule *rule);

/* for the one in which a new thread begins, with the registers of the thread that created it, */
void go_frame_begin_thread(const struct go_place *place, struct rule *rule);

/* and for one that goes to the thread's own stack, of which it then is the first frame. */
void go_frame_end(const struct go_place *place, struct rule *rule);

/* ---- For these ---- */

/* Whether `address` is a call's last byte. */
bool go_code_is_call(const struct pclntab *table, uint64_t address);

/* Whether there is this code, of at most 16 bytes. */
bool go_code_is(const struct pclntab *table, uint64_t address, const void *code, size_t bytes);

#endif
