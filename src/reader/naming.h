/* What the reader process does: it names addresses of the modules whose files it is given. */
#ifndef FGPROF_READER_NAMING_H
#define FGPROF_READER_NAMING_H

#include "base/starter.h"

/* How many modules keep their symbols open: those that were asked for last. Opening them is most of
 * the work when only a few addresses are named. Each may have hundreds of megabytes of symbols. */
#define OPEN_MODULES_MAX 4

/* Longer names, and paths of files, are cut: they are kept as long as a profile needs them. */
#define READER_TEXT_MAX 4096u

extern const struct helper_role naming_role;

#endif
