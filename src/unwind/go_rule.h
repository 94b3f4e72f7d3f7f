/* Rules for Go's code, from its function table, which says how large each frame is. */
#ifndef FGPROF_UNWIND_GO_RULE_H
#define FGPROF_UNWIND_GO_RULE_H

#include "unwind/rule.h"
#include "elf/go/pclntab.h"

/* Makes the rule of an address of the table's module. Returns false if it is not Go's code, or the
 * table does not say how to unwind it. */
bool go_rule_make(const struct pclntab *table, uint64_t address, struct rule *ret_rule);

#endif
