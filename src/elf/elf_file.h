/* What of an ELF file is needed to find and unwind its code: segments, build id, unwind table. */
#ifndef FGPROF_ELF_ELF_FILE_H
#define FGPROF_ELF_ELF_FILE_H

#include "elf/module.h"

/* Fills in segments, unwind_table and build_id from module->image. Returns 0, -ENOEXEC where it is
 * not an ELF file that can be used, or -ENOMEM. */
int elf_file_read(struct module *module);

/* Frees all that a module holds. */
void module_clear(struct module *module);

/* That and the module. Takes NULL. */
void module_free(struct module *module);

#endif
