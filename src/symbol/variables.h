/* The names of a module's data: of variables, and of classes by their vtables. */
#ifndef FGPROF_SYMBOL_VARIABLES_H
#define FGPROF_SYMBOL_VARIABLES_H

#include "elf/module.h"

/* The variable that one of the module's own addresses is in, demangled; the caller frees it, and
 * *ret_offset is the address's offset in it. Returns 0, -ENOENT if no symbol says so, or -ENOMEM.
 * Reads all symbols of the module. */
int variable_find(const struct module *module, uint64_t address, char **ret_name,
                  uint64_t *ret_offset);

/* The C++ class of which objects point to that one of the module's own addresses, demangled; the
 * caller frees it. Of what std::make_shared allocates, it is the class of the object in there.
 * Returns 0, -ENOENT if no symbol says so, or -ENOMEM. Reads all symbols of the module. */
int class_find(const struct module *module, uint64_t address, char **ret_name);

#endif
