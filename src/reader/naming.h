/* What the reader process does: it names addresses of the modules whose files it is given. */
#ifndef FGPROF_READER_NAMING_H
#define FGPROF_READER_NAMING_H

#include "base/starter.h"

/* Modules whose symbols stay open: the last few that were asked for. Opening them is most of the
 * work when only a few addresses are named. Each may have hundreds of megabytes of symbols. */
#define OPEN_MODULES_MAX 4

extern const struct helper_role naming_role;

#endif
