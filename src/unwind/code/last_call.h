/* Calls that nothing of their function comes after. */
#ifndef FGPROF_UNWIND_CODE_LAST_CALL_H
#define FGPROF_UNWIND_CODE_LAST_CALL_H

#include "elf/module.h"

/* Whether the call before `after_call` is known not to return there: it is of a function that never
 * returns, it ends its thread, it is the first function's, or another function begins behind it. */
bool call_is_known_last(struct module *module, uint64_t after_call);

#endif
