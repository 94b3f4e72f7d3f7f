/* The memory that the reader opens: header and ring, in a memfd. */
#ifndef FGPROF_AGENT_SEGMENT_H
#define FGPROF_AGENT_SEGMENT_H

#include "agent/format.h"

#include <stdbool.h>

/* What a segment's header says from its start. */
struct segment_start {
    uint64_t code_start, code_limit; /* the agent's code */
    uint64_t rate;
    uint32_t wanted;
    bool has_children; /* children of fork are profiled in the same way */
};

/* Makes the process's segment, and everything else that `process` points to. Returns false if the
 * kernel refuses something: the agent is then off. */
bool segment_open(const struct segment_start *start);

/* Sets what is known only once the program's libraries are loaded. */
void segment_describe(const char *allocator);

/* In a child of fork: makes a segment for it in place of its parent's, for the same profiles, but
 * idle unless children are wanted, too. Until then the child has none. */
void segment_renew(void);

/* At the exit of the process: if anything is wanted, waits a short time for the reader to take what
 * there is. */
void segment_await_reader(void);

#endif
