#ifndef FGPROF_SYMBOL_NAMES_DEMANGLE_H
#define FGPROF_SYMBOL_NAMES_DEMANGLE_H

#include "fgprof.h"

/* The name of a function to show for a linker symbol, or for its name in the debug information:
 *   FGPROF_NAMES_SHORT  C++ as pprof shows it: without parameters (but those of an enclosing
 *                       function), return type, template arguments and clone suffixes; Rust without
 *                       its hash; D
 *   FGPROF_NAMES_FULL   C++ with all of these
 *   FGPROF_NAMES_RAW    as it is
 * NULL if that is the symbol itself: it is of none of these languages, or its name would take too
 * long to find, or too much room. The caller frees it. */
char *demangle(const char *symbol, enum fgprof_names names);

/* Removes the template arguments from a C++ function's source name, in place: changes
 * "std::vector<int, std::allocator<int> >::push_back" to "std::vector::push_back". The '<' of
 * operators stays ("operator<<"), and so does one that a name begins with ("<init>"). A name with
 * unbalanced brackets stays as it is. Returns 0 or -ENOMEM. */
int fold_name(char *name);

#endif
