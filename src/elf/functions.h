/* Where a module's functions begin, from its symbol tables: for code without an unwind table. */
#ifndef FGPROF_ELF_FUNCTIONS_H
#define FGPROF_ELF_FUNCTIONS_H

#include "elf/module.h"

/* Finds the function that holds `address`; the symbol tables are read at first use. A function
 * whose symbol has no size extends to the next one. Returns false if there is none, or memory is
 * short. */
bool functions_find(struct module *module, uint64_t address, struct function_range *ret_range);

void functions_free(struct functions *functions);

#endif
