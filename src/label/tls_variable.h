/* Finds where each thread of a program has a TLS variable, by any of the TLS models. */
#ifndef FGPROF_LABEL_TLS_VARIABLE_H
#define FGPROF_LABEL_TLS_VARIABLE_H

#include "elf/query.h"
#include "mapping/space.h"
#include "observe/thread_context.h"

/* Returns 0; -ENOENT if no module of the program shows a variable of that name, or the dynamic
 * linker knows of no library that does (one that it has unloaded, or in a namespace that dlmopen(3)
 * made); or -EAGAIN if it has not set up that library's TLS, does not tell (one that is not
 * glibc's), or can't be read; or -ENOMEM. `tid` is a live thread of the program. */
int tls_variable_find(struct queries *queries, struct space *space, pid_t tid, const char *name,
                      struct context_place *ret_place);

#endif
