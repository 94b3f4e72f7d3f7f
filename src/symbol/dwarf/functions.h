/* The functions of a unit that have code, and the calls that were inlined into one of them. */
#ifndef FGPROF_SYMBOL_DWARF_FUNCTIONS_H
#define FGPROF_SYMBOL_DWARF_FUNCTIONS_H

#include "symbol/dwarf/ranges.h"

struct inlined_range {
    uint64_t start, end;
    struct value call_file, call_line; /* where it was called */
    uint64_t die;
};

/* Holds one unit at a time. The first look-up reads the whole unit; later look-ups in the same unit
 * and function are nearly free. */
struct debug_functions {
    struct unit unit;
    struct slice entries; /* the unit's, from its header on */
    struct entry_ranges ranges;
    uint64_t inlined_of;           /* the function whose calls are in `inlined` */
    struct inlined_range *inlined; /* an outer call before those within it */
    size_t inlined_count, inlined_capacity;
    struct code_ranges scratch;
};

/* Replaces the contents of `functions` by those of `unit`. Returns 0, -ENOMEM, or -ENOEXEC if the
 * unit can't be read: then it is empty. */
int debug_functions_read(struct debug_functions *functions, const struct unit *unit);
void debug_functions_free(struct debug_functions *functions);

/* The innermost function around `address`; functions->inlined has the calls in it. NULL if there is
 * none. */
const struct entry_range *debug_functions_find(struct debug_functions *functions, uint64_t address);

#endif
