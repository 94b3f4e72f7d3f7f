/* Modules whose symbols are open: the last few that were asked for. Opening them is most of the
 * work when only a few addresses are named. */
#ifndef FGPROF_SYMBOL_OPEN_MODULES_H
#define FGPROF_SYMBOL_OPEN_MODULES_H

#include "symbol/symbols.h"

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
