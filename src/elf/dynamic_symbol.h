/* A symbol that a module shows to others, by its name. */
#ifndef FGPROF_ELF_DYNAMIC_SYMBOL_H
#define FGPROF_ELF_DYNAMIC_SYMBOL_H

#include "elf/module.h"

/* Finds the symbol with that name and type (STT_TLS ...) in .dynsym, or else in .symtab, because a
 * static executable may have no .dynsym. Returns false if there is none. */
bool dynamic_symbol_find(struct module *module, const char *name, unsigned char type,
                         struct module_part *ret_symbol);

#endif
