/* What the agent took of a thread, as a snapshot: AGENT_REGISTERS and the stack from its stack
 * pointer on (agent/format.h). */
#ifndef FGPROF_OBJECTS_AGENT_STACK_H
#define FGPROF_OBJECTS_AGENT_STACK_H

#include "agent/format.h"
#include "observe/snapshot.h"

/* Fills the snapshot, in whose stack.memory the stack's bytes are already. */
void agent_stack_fill(struct snapshot *snapshot, const uint64_t registers[AGENT_REGISTER_COUNT],
                      size_t stack_bytes, bool is_cut);

#endif
