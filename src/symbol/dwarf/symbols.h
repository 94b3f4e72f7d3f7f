/* What a module's debug information says about an address: its function, the calls that were
 * inlined there, and the file and line. */
#ifndef FGPROF_SYMBOL_DWARF_SYMBOLS_H
#define FGPROF_SYMBOL_DWARF_SYMBOLS_H

#include "symbol/dwarf/info.h"
#include "base/index.h"
#include "symbol/dwarf/functions.h"
#include "symbol/dwarf/lines.h"
#include "symbol/dwarf/split.h"
#include "symbol/symbol.h"
#include "elf/module.h"

/* The names of functions by their entries in the debug information. */
struct known_name {
    const struct debug_info *info;
    uint64_t die;
    char *name; /* NULL: no name */
};

struct names {
    struct known_name *items;
    size_t count, capacity;
    size_t bytes;
    struct index index;
    struct unit other; /* the last unit that another one referred to */
};

struct debug_symbols { /* zeros: there is no debug information */
    struct debug_info *info;
    /* Which unit holds an address: from their own ranges, because clang omits .debug_aranges. */
    struct entry_ranges units;
    struct split split;
    struct names names;
    /* One unit at a time: addresses come sorted. */
    uint64_t unit; /* where it begins in .debug_info */
    struct debug_functions functions;
    struct lines lines;
    bool is_complete; /* no part of the unit is missing */
};

/* Takes over `object`, even on error. It is the module's file or one that was split from it, at
 * `path`. `files` must outlive it. Returns 0, -ENOMEM, or -ENOEXEC if it can't be read. */
int debug_symbols_open(struct debug_symbols *debug, const struct module *module,
                       struct debug_files *files, struct object *object, const char *path);
void debug_symbols_close(struct debug_symbols *debug);

/* Adds to `symbol` the lines at one of the module's own addresses, if any are known. Sets
 * *ret_start to where its function begins, or to UINT64_MAX. Strings are valid until the next
 * look-up. */
void debug_symbols_find(struct debug_symbols *debug, uint64_t address, struct symbol *symbol,
                        uint64_t *ret_start);

#endif
