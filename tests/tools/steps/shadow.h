/* The true call stack of a thread, kept by watching what each of its instructions does: a call adds
 * an entry, a return takes it away; what the stack pointer is moved over is gone with the next
 * jump (longjmp, exceptions); a signal's handler is entered above what it interrupted. A stack
 * pointer that is set to elsewhere is another stack: a signal's own, or that of another context
 * (swapcontext), whose entries are put aside. */
#ifndef FGPROF_STEPS_SHADOW_H
#define FGPROF_STEPS_SHADOW_H

#include "instructions.h"

#include <stddef.h>

struct shadow_entry {
    uint64_t slot; /* the stack pointer right after the call; the return address is there, if the
                      call pushes it */
    uint64_t return_address; /* of a signal's: where the interrupted code goes on */
    bool is_exact;           /* the frame is looked up there and not one before it */
};

/* A stack that the entries from `first` on lie on. */
struct shadow_region {
    uint64_t base;    /* the highest stack pointer on it */
    uint64_t left_sp; /* the one when it was left for another */
    size_t first;
};

#define SHADOW_REGIONS_MAX 16

/* What returns to each other: the current one's, or those of a context that is put aside. */
struct shadow_chain {
    struct shadow_entry *entries; /* the leaf's is last */
    size_t count, capacity;
    struct shadow_region regions[SHADOW_REGIONS_MAX];
    size_t region_count;
    bool is_whole; /* its first entry is called by the thread's first frame */
};

#define SHADOW_CHAINS_MAX 64

struct shadow {
    struct shadow_chain chains[SHADOW_CHAINS_MAX];
    size_t chain_count;
    struct shadow_chain *current;
};

/* The stack pointer and the program counter at a stop. */
struct shadow_place {
    uint64_t pc, sp;
};

/* Begins with a thread at `sp`, of which nobody knows how it came there; or, where `is_whole`,
 * where nobody called it. */
void shadow_begin(struct shadow *shadow, uint64_t sp, bool is_whole);

/* Takes in one instruction. `number` is that of the system call, if it is one. Returns false where
 * memory is short or there are too many stacks. */
bool shadow_step(struct shadow *shadow, const struct instruction *instruction, uint64_t number,
                 struct shadow_place before, struct shadow_place after);

/* A signal's frame, as the kernel put it on the stack. */
struct shadow_signal {
    uint64_t sp;       /* when the handler is entered */
    uint64_t end_sp;   /* and when it has returned, */
    uint64_t restorer; /* to this */
    uint64_t interrupted_pc;
    uint64_t interrupted_sp;
    uint64_t stack, stack_bytes; /* that was set by sigaltstack(2); 0 bytes: none */
};

/* A signal was delivered: the thread is at its handler's first instruction. */
bool shadow_enter_handler(struct shadow *shadow, const struct shadow_signal *signal);

void shadow_free(struct shadow *shadow);

#endif
