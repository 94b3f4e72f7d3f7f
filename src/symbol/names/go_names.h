/* The names of Go functions, from the table that every Go program has (see elf/go/pclntab.h). */
#ifndef FGPROF_SYMBOL_NAMES_GO_NAMES_H
#define FGPROF_SYMBOL_NAMES_GO_NAMES_H

#include "symbol/symbol.h"
#include "elf/module.h"

struct go_names;

/* Returns 0, -ENOENT if the module is not a Go program, or -ENOMEM. `module` must outlive the
 * names. */
int go_names_open(struct module *module, struct go_names **ret_names);
void go_names_close(struct go_names *names);

/* Looks up one of the module's own addresses. Returns false if it is not in Go code. Strings live
 * as long as the names. */
bool go_names_find(struct go_names *names, uint64_t address, struct symbol *ret_symbol);

#endif
