/* The rule of an address in a function without call frame information, from its machine code. */
#ifndef FGPROF_UNWIND_CODE_RULE_CODE_H
#define FGPROF_UNWIND_CODE_RULE_CODE_H

#include "unwind/rule.h"

/* RULE_CALLER, with is_from_code set, if the code tells how far above the stack pointer the return
 * address is; RULE_NONE if it does not, or if the frame pointer is to be followed. */
struct rule rule_from_code(struct module *module, uint64_t address);

/* The same for the byte at `at` of `code`, which begins with its function. */
struct rule rule_from_bytes(const uint8_t *code, size_t code_bytes, size_t at);

#endif
