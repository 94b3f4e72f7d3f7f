#ifndef FGPROF_AGENT_MMAP_H
#define FGPROF_AGENT_MMAP_H

#include "agent/hook.h"

#include <stdint.h>

extern const struct hooks mmap_hooks;

/* Mappings that code of this range makes are not counted. */
void mmap_leave_out(uint64_t start, uint64_t limit);

#endif
