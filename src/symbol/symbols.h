/* The symbols and debug information of one module. */
#ifndef FGPROF_SYMBOL_SYMBOLS_H
#define FGPROF_SYMBOL_SYMBOLS_H

#include "symbol/debug_fetch.h"
#include "symbol/symbol.h"
#include "elf/module.h"

struct symbols;

/* Returns 0, -ENOMEM, or -ENOEXEC if the file can't be read: *ret_why says why. `module` must
 * outlive the symbols. `fetch` is asked for what is not on this machine; it may be NULL. */
int symbols_open(struct module *module, struct debug_fetch *fetch, struct symbols **ret_symbols,
                 const char **ret_why);
void symbols_close(struct symbols *symbols);

/* Looks up one of the module's own addresses. Ascending order costs the least: a unit of the debug
 * information is read at the first address in it, and released at the first in another. */
void symbols_find(struct symbols *symbols, uint64_t address, struct symbol *ret_symbol);

/* Modules whose symbols are open: the last few that were asked for. Opening them is most of the
 * work when only a few addresses are named. */
#define OPEN_MODULES_MAX 4 /* each may have hundreds of megabytes of symbols */

struct open_module {
    const struct module *module; /* NULL: none */
    struct module *twin;         /* read in its place if it may be in use meanwhile; or NULL */
    struct module *read;         /* the twin, or the module itself */
    struct symbols *symbols;     /* NULL: it can't be read, */
    const char *why;             /* and why */
    uint64_t used;               /* when, by a counter */
};

struct open_modules {
    struct open_module items[OPEN_MODULES_MAX];
    size_t most; /* at a time: 1 to OPEN_MODULES_MAX */
    uint64_t used;
};

/* Opens the module unless it is open. If another thread may be using it, it is opened as a twin,
 * and `is_in_use` must be the same each time. Valid until the next one is asked for. `fetch`: see
 * symbols_open. Returns 0 or -ENOMEM. */
int open_modules_get(struct open_modules *modules, struct module *module, bool is_in_use,
                     struct debug_fetch *fetch, const struct open_module **ret_opened);
void open_modules_close(struct open_modules *modules);

#endif
