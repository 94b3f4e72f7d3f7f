/* Finds the file that holds a module's debug information, where it was split off. */
#ifndef FGPROF_SYMBOL_DEBUG_FILE_H
#define FGPROF_SYMBOL_DEBUG_FILE_H

#include <elfutils/libdwfl.h>

/* For Dwfl_Callbacks.find_debuginfo: by build id below /usr/lib/debug, then by the name and
 * checksum of .gnu_debuglink. The name comes from the target's file: nothing but a regular file is
 * opened. debuginfod is not asked. */
int debug_file_find(Dwfl_Module *module, void **user, const char *module_name, Dwarf_Addr base,
                    const char *file, const char *link, GElf_Word link_crc, char **ret_path);

#endif
