/* Split debug information: units whose entries are in a file of their own, .dwo, or in a package of
 * such files, .dwp (DWARF 5, 7.3; before it, GCC's "DebugFission"). */
#ifndef FGPROF_SYMBOL_DWARF_SPLIT_H
#define FGPROF_SYMBOL_DWARF_SPLIT_H

#include "symbol/dwarf/info.h"

struct split {
    char *package_path; /* owned; tried at the first unit that was split */
    struct debug_info *package;
    struct section index;    /* .debug_cu_index of the package */
    struct debug_info *file; /* of the last unit that has one of its own */
};

/* Finds the part of `skeleton`, whose root entry is `root`, that was split off: in the package,
 * else in the file that it names. Valid until the next one is asked for. Returns 0, -ENOMEM, or
 * -ENOEXEC where it is not found, or is another build's. */
int split_read(struct split *split, const struct unit *skeleton, const struct die *root,
               struct unit *ret_unit);
void split_free(struct split *split);

#endif
