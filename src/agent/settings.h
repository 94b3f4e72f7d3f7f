/* What the environment says. */
#ifndef FGPROF_AGENT_SETTINGS_H
#define FGPROF_AGENT_SETTINGS_H

#include "agent/segment.h"

#include <stdbool.h>

/* FGPROF_AGENT_WANTED is a sum of AGENT_WANTS_*, and FGPROF_AGENT_HEAP_RATE asks for the heap at
 * this rate: without a reader, from the program's first allocation on. */
void settings_read(struct segment_start *start);

/* Whether LD_PRELOAD names this file. Only base names count. */
bool settings_preload_has(const char *path);

/* Takes that out of LD_PRELOAD unless FGPROF_AGENT_CHILDREN is 1, so that programs which this one
 * starts are without the agent. Other entries stay. Returns whether it did. */
bool settings_leave_children_alone(const char *path);

#endif
