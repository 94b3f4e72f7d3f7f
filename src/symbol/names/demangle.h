#ifndef FGPROF_SYMBOL_NAMES_DEMANGLE_H
#define FGPROF_SYMBOL_NAMES_DEMANGLE_H

#include "fgprof.h"
#include "base/strings.h"

/* The function name to show for a linker symbol, or for the function's name in the debug
 * information:
 *   FGPROF_NAMES_SHORT  C++ as pprof shows it: without parameters (but those of an enclosing
 *                       function), return type, template arguments and clone suffixes; Rust without
 *                       its hash; D
 *   FGPROF_NAMES_FULL   C++ with all of these
 *   FGPROF_NAMES_RAW    as it is
 * NULL if that is the symbol itself: it is in none of these languages, or its name would take too
 * much time or memory. The caller frees it. */
char *demangle(const char *symbol, enum fgprof_names names);

/* Whether demangle may return a name for the symbol. Only looks at its length and at a few
 * characters, so it is safe for any symbol. */
bool demangle_may_change(const char *symbol, enum fgprof_names names);

/* Removes the template arguments from a C++ function's source name, in place: changes
 * "std::vector<int, std::allocator<int> >::push_back" to "std::vector::push_back". The '<' of
 * operators stays ("operator<<"), and so does one at the start of a name ("<init>"). A name with
 * unbalanced brackets stays as it is. Returns 0 or -ENOMEM. */
int fold_name(char *name);

/* Names to show, each computed once, because many addresses have the same function, and demangling
 * takes longer than everything else. */
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
