/* .gnu_debugdata: a small ELF file with the symbols that are in no .dynsym, compressed by xz ("mini
 * debug info" in GDB's manual). */
#ifndef FGPROF_SYMBOL_DEBUG_DATA_H
#define FGPROF_SYMBOL_DEBUG_DATA_H

#include "elf/object.h"

/* Returns false if there is none, or it can't be read. */
bool debug_data_open(struct object *object, struct object *ret_inner);

#endif
