/* Makes a snapshot from the agent's copy of a thread: AGENT_REGISTERS and the stack from its stack
 * pointer on (agent/format.h). */
#ifndef FGPROF_OBJECTS_AGENT_STACK_H
#define FGPROF_OBJECTS_AGENT_STACK_H

#include "agent/format.h"
#include "observe/snapshot.h"

/* Fills the snapshot, whose stack.memory already holds the stack's bytes. */
void agent_stack_fill(struct snapshot *snapshot, const uint64_t registers[AGENT_REGISTER_COUNT],
                      size_t stack_bytes, bool is_cut);

#endif
