/* A thread at one moment: its registers and the bytes of its stack from sp upwards. */
#ifndef FGPROF_CAPTURE_SNAPSHOT_H
#define FGPROF_CAPTURE_SNAPSHOT_H

#include "capture/registers.h"

struct snapshot {
    struct registers registers;
    uint64_t stack_address; /* of stack[0] */
    unsigned char *stack;
    size_t stack_bytes;      /* how many were copied */
    size_t stack_capacity;   /* how many fit */
    uint64_t stack_end;      /* of the mapping that the stack is in */
    bool stack_end_is_known; /* false: only its page was copied, and stack_end is where that ends */
};

void snapshot_free(struct snapshot *snapshot);

#endif
