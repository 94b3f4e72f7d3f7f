/* Modules whose symbols are open: the last few that were asked for. To open them is most of the
 * work where a few addresses are named. */
#ifndef FGPROF_SYMBOL_OPEN_MODULES_H
#define FGPROF_SYMBOL_OPEN_MODULES_H

#include "symbol/symbols.h"

#define OPEN_MODULES_MAX 4 /* each may have hundreds of megabytes of symbols */

struct open_module {
    const struct module *module; /* NULL: none */
    struct module *twin;     /* as which it is read, where it may be in use meanwhile; or NULL */
    struct module *read;     /* that, or the module itself */
    struct symbols *symbols; /* NULL: it can't be read, */
    const char *why;         /* and why */
    uint64_t used;           /* when, as a number that grows */
};

struct open_modules {
    struct open_module items[OPEN_MODULES_MAX];
    size_t most; /* at a time: 1 to OPEN_MODULES_MAX */
    uint64_t used;
};

/* Opens the module unless it is: as a twin where it may be in use by another thread, so that it
 * must be so each time. Valid until the next one is asked for. `fetch`: see symbols_open. Returns 0
 * or -ENOMEM. */
int open_modules_get(struct open_modules *modules, struct module *module, bool is_in_use,
                     struct debug_fetch *fetch, const struct open_module **ret_opened);
void open_modules_close(struct open_modules *modules);

#endif
