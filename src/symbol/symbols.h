/* The symbols and debug information of one module. */
#ifndef FGPROF_SYMBOL_SYMBOLS_H
#define FGPROF_SYMBOL_SYMBOLS_H

#include "symbol/debug_file.h"
#include "symbol/symbol.h"
#include "elf/module.h"

struct symbols;

/* Returns 0, -ENOMEM, or -ENOEXEC if the file can't be read; *ret_why then has the reason. `module`
 * and `files` must outlive the symbols. */
int symbols_open(struct module *module, struct debug_files *files, struct symbols **ret_symbols,
                 const char **ret_why);
void symbols_close(struct symbols *symbols);

/* Looks up one of the module's own addresses. Ascending order is cheapest: a unit of the debug
 * information is read at the first address in it, and released at the first address in another. */
void symbols_find(struct symbols *symbols, uint64_t address, struct symbol *ret_symbol);

#endif
