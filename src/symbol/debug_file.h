/* Finds the file that holds a module's debug information, where it was split off. */
#ifndef FGPROF_SYMBOL_DEBUG_FILE_H
#define FGPROF_SYMBOL_DEBUG_FILE_H

#include "elf/object.h"

/* By build id below /usr/lib/debug, then by the name and checksum of .gnu_debuglink next to `path`,
 * in .debug there, and below /usr/lib/debug. The name comes from the target's file: nothing but a
 * regular file is opened. All are looked for below the root directory of the process first, where
 * that is not ours. Returns 0, or -ENOENT where there is none that belongs to `object`.
 * *ret_path is the caller's to free. */
int debug_file_find(struct object *object, int root_fd_plus_1, const char *path,
                    struct object *ret_found, char **ret_path);

/* Likewise what dwz moved from the debug information of `object` to a file shared by several
 * (.gnu_debugaltlink): by the name there, and by build id. */
int debug_file_find_supplement(struct object *object, int root_fd_plus_1, const char *path,
                               struct object *ret_found);

#endif
