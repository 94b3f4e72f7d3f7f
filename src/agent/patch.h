/* Hooks for calls that are bound to other functions: those of a program that loaded the agent when
 * it was already running (dlopen), or in which another file comes first.
 *
 * A call of a function in another file goes through a word in the caller's file, which the dynamic
 * linker fills when it loads the file or at the first call. These words are set to the agent's
 * functions: in all loaded files, and in those loaded later, for which dlopen and dlsym are hooked,
 * too. */
#ifndef FGPROF_AGENT_PATCH_H
#define FGPROF_AGENT_PATCH_H

#include "agent/hook.h"

/* Adds hooks that are set from now on, and sets them. Not for two threads at once. */
void patch(const struct hooks *hooks);

#endif
