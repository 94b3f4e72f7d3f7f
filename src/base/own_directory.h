/* The directory of the library or program that this code is linked into. The project's other files
 * are installed next to it. */
#ifndef FGPROF_BASE_OWN_DIRECTORY_H
#define FGPROF_BASE_OWN_DIRECTORY_H

#include <limits.h>
#include <stdbool.h>

/* Writes its path, without a slash at the end. Returns false if that can't be found. */
bool own_directory_find(char path[PATH_MAX]);

#endif
