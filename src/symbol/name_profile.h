/* From what was counted to a finished profile: each distinct address is named once. */
#ifndef FGPROF_SYMBOL_NAME_PROFILE_H
#define FGPROF_SYMBOL_NAME_PROFILE_H

#include "module/space.h"
#include "profile/profile.h"
#include "profile/stack_table.h"
#include "symbol/debug_fetch.h"
#include "symbol/name_cache.h"

/* `timeline` is what was kept of the table's samples, NULL: none was. `strings` are those of the
 * labels. `fetch`: see symbols_open. `cache`: what it has need not be looked up, what it has not is
 * added; and the modules may be in use by another thread meanwhile. NULL: there is none, and they
 * may not. Returns 0 or -ENOMEM. The summary's samples_unnamed is set, the rest of it is the
 * caller's. */
int name_profile(const struct stack_table *table, const struct timeline *timeline,
                 const struct spaces *spaces, const struct strings *strings,
                 enum fgprof_names names, struct debug_fetch *fetch, struct name_cache *cache,
                 struct fgprof_profile **ret_profile);

#endif
