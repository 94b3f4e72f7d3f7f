/* The names of functions, by their entries in the debug information. */
#ifndef FGPROF_SYMBOL_DWARF_NAMES_H
#define FGPROF_SYMBOL_DWARF_NAMES_H

#include "symbol/dwarf/info.h"
#include "base/index.h"

struct known_name {
    const struct debug_info *info;
    uint64_t die;
    char *name; /* NULL: it has none */
};

struct names {
    struct known_name *items;
    size_t count, capacity;
    size_t bytes;
    struct index index;
    struct unit other; /* the last one that another one referred to */
};

/* The name for the linker, else for the source, of the entry at `die` of `unit`: its own, or that
 * of the abstract function or declaration that it refers to. NULL: it has none, or there is no
 * memory. Valid until names_forget_many. */
const char *names_get(struct names *names, const struct unit *unit, uint64_t die);

/* Gives memory back where there are very many. */
void names_forget_many(struct names *names);
void names_free(struct names *names);

#endif
