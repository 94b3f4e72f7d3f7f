/* Names to show, each computed once: many addresses have the same function, and demangling takes
 * longer than everything else. */
#ifndef FGPROF_SYMBOL_NAMES_SHOWN_NAMES_H
#define FGPROF_SYMBOL_NAMES_SHOWN_NAMES_H

#include "symbol/names/demangle.h"
#include "base/strings.h"

struct shown_names {
    struct strings symbols;
    char **shown; /* by the symbol's number; NULL: the symbol itself */
    size_t count, capacity;
};

/* The name to show for a symbol (see demangle), which may be the symbol itself. NULL: no memory.
 * Valid as long as `names`. */
const char *shown_name(struct shown_names *names, const char *symbol, enum fgprof_names kind);

void shown_names_free(struct shown_names *names);

#endif
