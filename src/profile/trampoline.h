/* The code that a signal handler returns to. Most builds of libc have no symbol for it. */
#ifndef FGPROF_PROFILE_TRAMPOLINE_H
#define FGPROF_PROFILE_TRAMPOLINE_H

#include "profile/profile.h"
#include "elf/module.h"

/* Whether the trampoline is at this one of the module's own addresses. Nothing calls it: if a stack
 * leads through it, the kernel put the handler there. */
bool trampoline_is_at(struct module *module, uint64_t address);

/* Names the location "<signal handler called>", as gdb does. `symbol` is its name in the symbol
 * table, or "". Returns 0 or -ENOMEM. */
int trampoline_name(struct fgprof_profile *profile, uint32_t location, const char *symbol);

#endif
