#ifndef FGPROF_AGENT_THREADS_H
#define FGPROF_AGENT_THREADS_H

#include "agent/hook.h"

extern const struct hooks thread_hooks;

#endif
