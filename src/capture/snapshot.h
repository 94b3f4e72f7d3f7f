/* A thread at one moment: its registers and the bytes of its stack from sp upwards. */
#ifndef FGPROF_CAPTURE_SNAPSHOT_H
#define FGPROF_CAPTURE_SNAPSHOT_H

#include "capture/registers.h"
#include "target/stack_areas.h"

struct snapshot {
    struct registers registers;
    uint64_t stack_address; /* of stack[0] */
    unsigned char *stack;
    size_t stack_bytes;      /* how many were copied */
    size_t stack_capacity;   /* how many fit */
    uint64_t stack_end;      /* of the mapping that the stack is in */
    bool stack_end_is_known; /* false: only its page was copied, and stack_end is where that ends */
};

/* Makes room for that much of a stack, before a thread is paused. Returns false where memory is
 * short. */
bool snapshot_make_room(struct snapshot *snapshot, size_t stack_bytes);

/* Copies the stack of thread `tid`, whose registers are in the snapshot: no more than `stack_limit`
 * bytes, for which there must be room; up to the end of the mapping that the stack is in, and no
 * further: what lies behind may be anything, also memory that is slow to read, or that only the
 * thread that we hold can provide (userfaultfd(2)). Where the mapping is not known, up to the end
 * of the page. */
void snapshot_copy_stack(struct snapshot *snapshot, pid_t tid, const struct stack_areas *areas,
                         size_t stack_limit);

void snapshot_free(struct snapshot *snapshot);

#endif
