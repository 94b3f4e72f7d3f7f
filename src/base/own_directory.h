/* Where the library or program is that this code is linked into. Others of this project are beside
 * it. */
#ifndef FGPROF_BASE_OWN_DIRECTORY_H
#define FGPROF_BASE_OWN_DIRECTORY_H

#include <limits.h>
#include <stdbool.h>

/* Writes its path, without a slash at the end. Returns false if that can't be found. */
bool own_directory_find(char path[PATH_MAX]);

#endif
