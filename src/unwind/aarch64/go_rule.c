/* Go's code on aarch64 is left to its call frame information and to frame pointers, which it
 * keeps. */
#include "unwind/go_rule.h"

bool go_rule_make(const struct pclntab *table, uint64_t address, struct rule *ret_rule)
{
    (void)table, (void)address, (void)ret_rule;
    return false;
}
