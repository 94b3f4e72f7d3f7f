/* The environment of a program that is to have the agent from its start. */
#ifndef FGPROF_API_PRELOAD_H
#define FGPROF_API_PRELOAD_H

#include "observe/object_source.h"

#include <stdbool.h>

/* Makes a copy of the calling process's environment in which the dynamic linker is told to load the
 * agent, and the agent what is wanted of it. Processes that the program starts have it, too, if
 * `has_children`. The caller frees the array and its strings with preload_free. Returns 0, -ELIBACC
 * if libfgprof-agent.so is not found, -ELIBBAD if LD_PRELOAD can't hold its path, -ENOMEM. */
int preload_environment(const struct object_options *objects, bool has_children,
                        char ***ret_environment);
void preload_free(char **environment);

#endif
