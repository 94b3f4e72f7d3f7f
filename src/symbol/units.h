/* Which compilation unit of the debug information holds an address.
 *
 * By the units' own ranges: .debug_aranges, which elfutils' look-up needs, is left out by clang. */
#ifndef FGPROF_SYMBOL_UNITS_H
#define FGPROF_SYMBOL_UNITS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>

struct unit_range {
    Dwarf_Addr start, end;
    Dwarf_Off die;
};

struct units {
    Dwarf *dwarf;
    struct unit_range *ranges; /* by start */
    size_t count, capacity;
};

/* Returns 0 or -ENOMEM. What can't be read of the debug information is left out. */
int units_read(struct units *units, Dwarf *dwarf);
bool units_find(const struct units *units, Dwarf_Addr address, Dwarf_Die *ret_unit);
void units_free(struct units *units);

#endif
