/* Where a function of unknown size ends. The build compiles one of x86_64/code_end.c and
 * aarch64/code_end.c. */
#ifndef FGPROF_UNWIND_CODE_CODE_END_H
#define FGPROF_UNWIND_CODE_CODE_END_H

#include "elf/module.h"

/* The end of the code that the function at `start` can reach sequentially and by its own jumps;
 * `limit` if it does not end before. */
uint64_t code_end_of_function(struct module *module, uint64_t start, uint64_t limit);

#endif
