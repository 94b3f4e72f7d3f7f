/* Unwinds a snapshot with libunwind, to judge what our own rules say. */
#ifndef FGPROF_TESTS_TOOLS_WALK_LIBUNWIND_H
#define FGPROF_TESTS_TOOLS_WALK_LIBUNWIND_H

#include "unwind/walk.h"

/* What it has learnt about one address space is kept in `libunwind`. */
struct libunwind;
int libunwind_new(struct libunwind **ret_libunwind);
void libunwind_free(struct libunwind *libunwind);

/* Returns 0 or -ENOMEM. */
int walk_by_libunwind(struct walk *walk, struct libunwind *libunwind);

#endif
