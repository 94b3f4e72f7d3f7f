/* The symbols and debug information of one module. */
#ifndef FGPROF_SYMBOL_SYMBOLS_H
#define FGPROF_SYMBOL_SYMBOLS_H

#include "symbol/debug_fetch.h"
#include "elf/module.h"

struct symbols;

/* One line of a location: its function, and where in it. Strings are valid until the
 * next look-up. */
struct symbol_line {
    const char *name; /* as in the symbol table */
    const char *file; /* NULL: not known */
    uint32_t line;    /* 0: not known */
    bool is_inlined;
};

#define SYMBOL_LINES_MAX                                                                           \
    64 /* nested inlined calls at one address; the outermost beyond are left out */

struct symbol {
    struct symbol_line lines[SYMBOL_LINES_MAX]; /* innermost first */
    size_t line_count;                          /* 0: nothing is known */
    uint64_t function_offset; /* of the address, in the function that is not inlined */
    bool has_debug_info;      /* so that inlined calls would be known */
};

/* Returns 0, -ENOMEM, or -ENOEXEC where the file can't be read: *ret_why tells why.
 * `module` must outlive it. `fetch`: what is not on this machine is asked for; may be NULL. */
int symbols_open(struct module *module, struct debug_fetch *fetch, struct symbols **ret_symbols,
                 const char **ret_why);
void symbols_close(struct symbols *symbols);

/* Looks up one of the module's own addresses. In ascending order that costs the least: a unit of
 * the debug information is read at the first address in it, and given back at the first in another.
 */
void symbols_find(struct symbols *symbols, uint64_t address, struct symbol *ret_symbol);

#endif
