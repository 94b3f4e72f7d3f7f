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

/* A range of a unit or a function, by its place in .debug_info. */
struct entry_range {
    uint64_t start, end;
    uint64_t reach; /* the largest end up to here */
    uint64_t at;
};

struct entry_ranges {
    struct entry_range *items; /* by start; they may overlap */
    size_t count, capacity;
};

/* Adds ranges of what is at `at`. Returns 0, -ENOMEM, or -ENOEXEC if there are too many: many
 * entries may refer to one long list. */
int entry_ranges_add(struct entry_ranges *entries, const struct code_ranges *ranges, uint64_t at);
/* Sorts them by `compare` (qsort(3)), which must order them by start first. */
void entry_ranges_sort(struct entry_ranges *entries, int (*compare)(const void *, const void *));
/* The last one that holds the address; NULL: none does. */
const struct entry_range *entry_ranges_find(const struct entry_ranges *entries, uint64_t address);

/* Whether the linker has discarded the code that begins here. GNU ld puts 0, or 1 where 0 ends a
 * list; lld also -1 and, in a list, -2 (lld/ELF/InputSection.cpp). */
static inline bool is_discarded(uint64_t address)
{
    return address <= 1 || address >= UINT64_MAX - 1;
}

#endif
