/* The parts of an ELF file that are needed to find and unwind its code: segments, build id, unwind
 * table. */
#ifndef FGPROF_ELF_ELF_FILE_H
#define FGPROF_ELF_ELF_FILE_H

#include "elf/module.h"

/* The kernel accepts 64 KiB of program headers (load_elf_phdrs in its fs/binfmt_elf.c); linkers
 * make about ten segments. */
#define SEGMENTS_MAX 256

/* Fills in segments, unwind_table and build_id from module->image. Returns 0, -ENOEXEC if it is not
 * a usable ELF file, or -ENOMEM. */
int elf_file_read(struct module *module);

/* Decompresses .debug_frame as a whole, because it will be searched. Call this before it is read.
 * If that fails, the section is empty. */
void elf_file_decompress(struct module *module);

/* How much memory it takes, roughly. */
size_t module_bytes(const struct module *module);

/* Frees what was read from the file at first use, and would be read again. */
void module_reset(struct module *module);

/* Closes the file, as if there had been too many open files: whatever refers to the module keeps
 * its path, and another process that maps the file gets another module. */
void module_close_file(struct module *module);

/* Frees everything that a module holds. */
void module_clear(struct module *module);

/* The same, and frees the module itself. Accepts NULL. */
void module_free(struct module *module);

#endif
