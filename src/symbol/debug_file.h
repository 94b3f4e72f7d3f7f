/* Finds the file that holds a module's debug information if that was split off. */
#ifndef FGPROF_SYMBOL_DEBUG_FILE_H
#define FGPROF_SYMBOL_DEBUG_FILE_H

#include "elf/object.h"
#include "symbol/debug_fetch.h"

struct module;

/* Opens what may hold debug information: in this process, or another one that may do so. */
struct debug_files {
    /* Returns a descriptor of a regular file, or a negative errno. */
    int (*open)(struct debug_files *files, const char *path);
    /* Asks a server. Returns a descriptor or a negative errno; the caller frees *ret_path. */
    int (*fetch)(struct debug_files *files, const unsigned char *build_id, size_t bytes,
                 char **ret_path);
};

/* Opens the files in this process: below the root directory of the module's process if that is not
 * ours, then below ours. `fetch` may be NULL. Both must outlive it. */
struct own_debug_files {
    struct debug_files files;
    const struct module *module;
    struct debug_fetch *fetch;
};
void own_debug_files_init(struct own_debug_files *own, const struct module *module,
                          struct debug_fetch *fetch);

/* Looks by build id below /usr/lib/debug, then by the name and checksum of .gnu_debuglink next to
 * `path`, in .debug there, and below /usr/lib/debug. The name comes from the target's file, so only
 * a regular file is opened. Returns 0, or -ENOENT if none belongs to `object`. The caller frees
 * *ret_path. */
int debug_file_find(struct object *object, struct debug_files *files, const char *path,
                    struct object *ret_found, char **ret_path);

/* The same, from a server. */
int debug_file_fetch(const struct object *object, struct debug_files *files,
                     struct object *ret_found, char **ret_path);

/* The same for the file to which dwz moved what several files share of their debug information
 * (.gnu_debugaltlink): by the name there, and by build id. */
int debug_file_find_supplement(struct object *object, struct debug_files *files, const char *path,
                               struct object *ret_found);

#endif
