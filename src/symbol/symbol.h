/* The names of an address. */
#ifndef FGPROF_SYMBOL_SYMBOL_H
#define FGPROF_SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One line of a location: its function, and where in it. Strings are valid until the next
 * look-up. */
struct symbol_line {
    const char *name;  /* as in the symbol table */
    const char *shown; /* demangled; NULL until it was */
    const char *file;  /* NULL: not known */
    uint32_t line;     /* 0: not known */
    bool is_inlined;
};

#define SYMBOL_LINES_MAX                                                                           \
    64 /* nested inlined calls at one address; further outer ones are left out */

struct symbol {
    struct symbol_line lines[SYMBOL_LINES_MAX]; /* innermost first */
    size_t line_count;                          /* 0: nothing is known */
    uint64_t function_offset; /* of the address in the function that is not inlined */
    bool has_debug_info;      /* so inlined calls would be known */
};

#endif
