/* Hooks for calls that are bound to other functions: those of a program that loaded the agent when
 * it was running already (dlopen), or in which another file comes first.
 *
 * A call of another file's function goes through a word of the caller's, which the dynamic linker
 * has filled, or fills at the first call. These words are set to the agent's functions: in all
 * files that are loaded, and in those that are loaded later, for which dlopen and dlsym are hooked,
 * too. */
#ifndef FGPROF_AGENT_PATCH_H
#define FGPROF_AGENT_PATCH_H

#include "agent/hook.h"

/* Adds hooks that are set from now on, and sets them. Not for two threads at once. */
void patch(const struct hooks *hooks);

#endif
