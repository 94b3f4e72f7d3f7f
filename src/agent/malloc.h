#ifndef FGPROF_AGENT_MALLOC_H
#define FGPROF_AGENT_MALLOC_H

#include "agent/hook.h"

extern const struct hooks malloc_hooks;

#endif
