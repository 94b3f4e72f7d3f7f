/* What the reader process for unwinding does: it looks things up in modules whose files it is
 * given. */
#ifndef FGPROF_READER_LOOKUP_SERVER_H
#define FGPROF_READER_LOOKUP_SERVER_H

#include "base/starter.h"

/* Modules that stay open. Each needs a file, of which as many may be open as in the process that
 * asks. */
#define LOOKUP_MODULES_MAX 256

extern const struct helper_role lookup_role;

#endif
