/* The names of Go functions, from the table that every Go program has (see elf/go/pclntab.h). */
#ifndef FGPROF_SYMBOL_NAMES_GO_NAMES_H
#define FGPROF_SYMBOL_NAMES_GO_NAMES_H

#include "symbol/symbol.h"
#include "base/strings.h"
#include "elf/module.h"

/* Looks up one of the module's own addresses. Returns false if it is not in Go code, or the module
 * is not a Go program. The names are kept in `strings`, which may start zeroed. */
bool go_names_find(struct module *module, uint64_t address, struct strings *strings,
                   struct symbol *ret_symbol);

#endif
