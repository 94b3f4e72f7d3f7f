/* Frees what was read of modules once no program has them mapped any more. */
#ifndef FGPROF_WORKER_UNUSED_MODULES_H
#define FGPROF_WORKER_UNUSED_MODULES_H

#include "unwind/rule_tables.h"
#include "worker/results.h"

/* Closes the modules that no mapping refers to. If a module is only in spaces that no program uses,
 * its names may still be needed, but nothing is unwound through it: frees what can be read again.
 * If too many files are open just for names, closes the oldest, whose names are lost. `rules`
 * may be NULL. Returns 0 or -ENOMEM. */
int unused_modules_free(struct results *results, struct rule_tables *rules);

#endif
