/* The true call stack of a thread, kept by watching each of its instructions: a call adds an entry,
 * and a return removes it; entries that the stack pointer moves past are removed at the next jump
 * (longjmp, exceptions); a signal handler is entered on top of what it interrupted. If the stack
 * pointer is set to somewhere else, that is another stack: a signal's own, or that of another
 * context (swapcontext), whose entries are put aside. */
#ifndef FGPROF_STEPS_SHADOW_H
#define FGPROF_STEPS_SHADOW_H

#include "instructions.h"

#include <stddef.h>

struct shadow_entry {
    uint64_t slot; /* the stack pointer right after the call; the return address is there, if the
                      call pushes it */
    uint64_t return_address; /* of a signal handler: where the interrupted code continues */
    bool is_exact;           /* looked up at this address, not at the one before */
};

/* A stack, which holds the entries from `first` on. */
struct shadow_region {
    uint64_t base;    /* the highest stack pointer on it */
    uint64_t left_sp; /* the stack pointer when it was left for another */
    size_t first;
};

#define SHADOW_REGIONS_MAX 16

/* Entries that return to each other: those of the current context, or of one that is put aside. */
struct shadow_chain {
    struct shadow_entry *entries; /* leaf last */
    size_t count, capacity;
    struct shadow_region regions[SHADOW_REGIONS_MAX];
    size_t region_count;
    bool is_whole; /* its first entry was called by the thread's first frame */
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

/* Starts with a thread at `sp` whose callers are unknown; or, if `is_whole`, with a thread that
 * nobody called. */
void shadow_begin(struct shadow *shadow, uint64_t sp, bool is_whole);

/* Takes in one instruction. `number` is that of the system call, if it is one. Returns false if
 * memory or the limit on stacks is exhausted. */
bool shadow_step(struct shadow *shadow, const struct instruction *instruction, uint64_t number,
                 struct shadow_place before, struct shadow_place after);

/* A signal frame, as the kernel put it on the stack. */
struct shadow_signal {
    uint64_t sp;       /* when the handler is entered */
    uint64_t end_sp;   /* and when it has returned */
    uint64_t restorer; /* to this address */
    uint64_t interrupted_pc;
    uint64_t interrupted_sp;
    uint64_t stack, stack_bytes; /* set by sigaltstack(2); 0 bytes: none */
};

/* A signal was delivered: the thread is at its handler's first instruction. */
bool shadow_enter_handler(struct shadow *shadow, const struct shadow_signal *signal);

void shadow_free(struct shadow *shadow);

#endif
