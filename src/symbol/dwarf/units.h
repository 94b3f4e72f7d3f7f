/* Which unit of the debug information holds an address.
 *
 * Goes by the units' own ranges, as clang leaves .debug_aranges out. */
#ifndef FGPROF_SYMBOL_DWARF_UNITS_H
#define FGPROF_SYMBOL_DWARF_UNITS_H

#include "symbol/dwarf/info.h"

struct unit_range {
    uint64_t start, end;
    uint64_t reach; /* the largest end up to here */
    uint64_t unit;  /* where in .debug_info */
};

struct units {
    struct unit_range *ranges; /* by start */
    size_t count, capacity;
};

/* Lists the units of `info`, reading only the root entry of each. Returns 0 or -ENOMEM. What can't
 * be read is left out. */
int units_read(struct units *units, struct debug_info *info);
bool units_find(const struct units *units, uint64_t address, uint64_t *ret_unit);
void units_free(struct units *units);

#endif
