/* Finds the file that holds a module's debug information if that was split off. */
#ifndef FGPROF_SYMBOL_DEBUG_FILE_H
#define FGPROF_SYMBOL_DEBUG_FILE_H

#include "elf/object.h"

/* Looks by build id below /usr/lib/debug, then by the name and checksum of .gnu_debuglink next to
 * `path`, in .debug there, and below /usr/lib/debug. The name comes from the target's file, so only
 * a regular file is opened. If the process's root directory is not ours, all are looked for below
 * that first. Returns 0, or -ENOENT if none belongs to `object`. *ret_path is the caller's to
 * free. */
int debug_file_find(struct object *object, int root_fd_plus_1, const char *path,
                    struct object *ret_found, char **ret_path);

/* The same for what dwz moved from the debug information of `object` to a file shared by several
 * (.gnu_debugaltlink): by the name there, and by build id. */
int debug_file_find_supplement(struct object *object, int root_fd_plus_1, const char *path,
                               struct object *ret_found);

#endif
