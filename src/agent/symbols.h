/* The symbols of a module: which it defines, and where it keeps the addresses of others'. */
#ifndef FGPROF_AGENT_SYMBOLS_H
#define FGPROF_AGENT_SYMBOLS_H

#include "agent/modules.h"

#include <stdbool.h>
#include <stdint.h>

/* What a module's dynamic section leads to (ELF specification, "Dynamic Section"). */
struct symbols {
    uint64_t base;
    const ElfW(Sym) * table;
    const char *names;
    const uint32_t *gnu_hash, *hash; /* NULL: it has none */
    const ElfW(Rela) * calls, *others;
    size_t call_count, other_count; /* relocations of functions that it calls, and all others */
};

/* Returns false if the module has no symbols. */
bool symbols_of(const struct module *module, struct symbols *ret_symbols);

/* The address of a function that the module defines; 0: it defines none of that name. */
uint64_t symbols_address(const struct symbols *symbols, const char *name);

#endif
