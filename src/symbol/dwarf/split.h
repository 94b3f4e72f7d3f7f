/* Split debug information: units whose entries are in a separate file, .dwo, or in a package of
 * such files, .dwp (DWARF 5, 7.3; before it, GCC's "DebugFission"). */
#ifndef FGPROF_SYMBOL_DWARF_SPLIT_H
#define FGPROF_SYMBOL_DWARF_SPLIT_H

#include "symbol/debug_file.h"
#include "symbol/dwarf/info.h"

struct split {
    struct debug_files *files;
    char *package_path; /* owned; tried at the first split unit */
    struct debug_info *package;
    struct section index;    /* .debug_cu_index of the package */
    struct debug_info *file; /* of the last unit that has a file of its own */
};

/* Finds the part that was split from `skeleton`, whose root entry is `root`: in the package, else
 * in the file that the root names. Valid until the next call. Returns 0, -ENOMEM, or -ENOEXEC if it
 * is not found, or belongs to another build. */
int split_read(struct split *split, const struct unit *skeleton, const struct die *root,
               struct unit *ret_unit);
void split_free(struct split *split);

#endif
