/* The names of functions by their entries in the debug information. */
#ifndef FGPROF_SYMBOL_DWARF_NAMES_H
#define FGPROF_SYMBOL_DWARF_NAMES_H

#include "symbol/dwarf/info.h"
#include "base/index.h"

struct known_name {
    const struct debug_info *info;
    uint64_t die;
    char *name; /* NULL: no name */
};

struct names {
    struct known_name *items;
    size_t count, capacity;
    size_t bytes;
    struct index index;
    struct unit other; /* the last unit that another one referred to */
};

/* The linker name, or else the source name, of the entry at `die` of `unit`: its own, or the name
 * of the abstract function or declaration that it refers to. NULL: there is none, or no memory.
 * Valid until names_forget_many. */
const char *names_get(struct names *names, const struct unit *unit, uint64_t die);

/* Frees memory if there are very many names. */
void names_forget_many(struct names *names);
void names_free(struct names *names);

#endif
