/* Finds where each thread of a program has a TLS variable, by any of the TLS models. */
#ifndef FGPROF_LABEL_TLS_VARIABLE_H
#define FGPROF_LABEL_TLS_VARIABLE_H

#include "elf/query.h"
#include "mapping/space.h"
#include "observe/thread_context.h"

/* Returns 0; -ENOENT if no module of the program has a symbol for a variable of that name, or the
 * dynamic linker does not list the library that does (it was unloaded, or is in a namespace made by
 * dlmopen(3)); -EAGAIN if the linker has not set up that library's TLS, does not show it (because
 * it is not glibc's), or can't be read; or -ENOMEM. `tid` is a live thread of the program. */
int tls_variable_find(struct queries *queries, struct space *space, pid_t tid, const char *name,
                      struct context_place *ret_place);

#endif
