/* The rule of an address in a function without call frame information, from its machine code. */
#ifndef FGPROF_UNWIND_CODE_RULE_CODE_H
#define FGPROF_UNWIND_CODE_RULE_CODE_H

#include "unwind/rule.h"

/* RULE_CALLER, with is_from_code set, if the code shows where the return address is: the code from
 * the start of its function, or of a linkage stub, up to the address, or from there to its returns.
 * RULE_UNKNOWN_FRAME if the function has aligned its stack pointer: then its frame pointer does not
 * lead to the caller either. RULE_NONE if the code shows nothing, or if the frame pointer should be
 * followed. */
struct rule rule_from_code(struct module *module, uint64_t address);

/* The same, using only the code from the address to the returns. */
struct rule rule_from_returns(struct module *module, uint64_t address);

/* Like rule_from_code, for the byte at `at` of `code`, which begins with its function. */
struct rule rule_from_bytes(const uint8_t *code, size_t code_bytes, size_t at);

#endif
