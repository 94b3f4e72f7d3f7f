/* Where a module's functions begin, by its symbol tables: for code that has no unwind table. */
#ifndef FGPROF_ELF_FUNCTIONS_H
#define FGPROF_ELF_FUNCTIONS_H

#include "elf/module.h"

/* Finds the function that holds `address`; the symbol tables are read at first use. One whose
 * symbol has no size reaches up to the next. Returns false where there is none, or memory is short.
 */
bool functions_find(struct module *module, uint64_t address, struct function_range *ret_range);

void functions_free(struct functions *functions);

#endif
