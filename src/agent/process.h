/* State of this process alone. It is in memory that a child of fork finds zeroed (MADV_WIPEONFORK):
 * until the child has a segment of its own, its agent is idle. */
#ifndef FGPROF_AGENT_PROCESS_H
#define FGPROF_AGENT_PROCESS_H

#include "agent/format.h"

#include <stdatomic.h>
#include <stdint.h>

struct process {
    /* The segment that is shared with the reader; NULL: there is none, and nothing is sampled. */
    _Atomic(struct agent_header *) header;
    /* objects.c: sampled objects and mappings that are live, their epoch, and whether a thread is
     * emptying these sets. */
    _Atomic uint64_t live, live_mappings;
    _Atomic uint32_t epoch, is_clearing;
    /* ring.c: since when the ring has been full (0: it was not), and how far it was read then. */
    _Atomic uint64_t full_since_ns, full_read;
};

/* Never NULL. */
extern struct process *process;

#endif
