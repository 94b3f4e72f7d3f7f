/* The addresses that an entry of the debug information covers. */
#ifndef FGPROF_SYMBOL_DWARF_RANGES_H
#define FGPROF_SYMBOL_DWARF_RANGES_H

#include "symbol/dwarf/info.h"

struct code_range {
    uint64_t start, end;
};

struct code_ranges {
    struct code_range *items;
    size_t count, capacity;
};

/* Replaces the contents of `ranges` by the entry's ranges: DW_AT_ranges, or from DW_AT_low_pc to
 * DW_AT_high_pc. Code that the linker has discarded is left out: its entries stay in the debug
 * information, at address 0 or another address that holds no code. Returns 0 or -ENOMEM. */
int ranges_read(struct code_ranges *ranges, const struct unit *unit, const struct die *die);

void ranges_free(struct code_ranges *ranges);

/* Whether the linker has discarded the code that begins here. GNU ld puts 0, or 1 where 0 ends a
 * list; lld also -1 and, in a list, -2 (lld/ELF/InputSection.cpp). */
static inline bool is_discarded(uint64_t address)
{
    return address <= 1 || address >= UINT64_MAX - 1;
}

#endif
