/* Unwinds a snapshot with libunwind, to check our own rules. */
#ifndef FGPROF_TESTS_TOOLS_WALK_LIBUNWIND_H
#define FGPROF_TESTS_TOOLS_WALK_LIBUNWIND_H

#include "unwind/walk.h"

/* Caches what is learnt about one address space. */
struct libunwind;
int libunwind_new(struct libunwind **ret_libunwind);
void libunwind_free(struct libunwind *libunwind);

/* Returns 0 or -ENOMEM. */
int walk_by_libunwind(struct walk *walk, struct libunwind *libunwind);

#endif
