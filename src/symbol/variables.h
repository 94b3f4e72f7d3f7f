/* The names of a module's data: of variables, and of classes by their vtables. */
#ifndef FGPROF_SYMBOL_VARIABLES_H
#define FGPROF_SYMBOL_VARIABLES_H

#include "elf/module.h"

/* The variable that holds one of the module's own addresses, demangled; the caller frees it.
 * *ret_offset is the offset of the address in it. Returns 0, -ENOENT if no symbol holds the
 * address, or -ENOMEM. Reads all symbols of the module. */
int variable_find(const struct module *module, uint64_t address, char **ret_name,
                  uint64_t *ret_offset);

/* The C++ class whose objects point to this address of the module, demangled; the caller frees it.
 * For an allocation of std::make_shared it is the class of the object inside. Returns 0, -ENOENT if
 * no symbol shows the class, or -ENOMEM. Reads all symbols of the module. */
int class_find(const struct module *module, uint64_t address, char **ret_name);

#endif
