/* The work of the reader process for unwinding: it looks things up in modules whose files it is
 * given. */
#ifndef FGPROF_READER_LOOKUP_SERVER_H
#define FGPROF_READER_LOOKUP_SERVER_H

#include "base/starter.h"

/* How many modules stay open. Each needs an open file, and the limit of open files is the same as
 * in the process that asks. */
#define LOOKUP_MODULES_MAX 256

extern const struct helper_role lookup_role;

#endif
