/* Calls that are the last code of their function. */
#ifndef FGPROF_UNWIND_CODE_LAST_CALL_H
#define FGPROF_UNWIND_CODE_LAST_CALL_H

#include "elf/module.h"

/* Whether the call before `after_call` is known not to return there: it calls a function that never
 * returns, it ends its thread, it is in the program's entry, or another function begins after it.
 */
bool call_is_known_last(struct module *module, uint64_t after_call);

#endif
