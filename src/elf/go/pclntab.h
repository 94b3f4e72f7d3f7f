/* The function table of Go programs. Every Go program has it, stripped or not, because Go's own
 * stack traces need it. It names each function and gives, for each of its instructions, the file,
 * the line, the functions inlined there, and the size of the frame.
 *
 * Its header has the offsets of its parts: a table of functions by address; a record for each;
 * names; files; and tables of numbers by address, stored as pairs: a change of the number, and for
 * how many bytes of code it then holds (golang.org/s/go12symtab; runtime/symtab.go,
 * runtime/runtime2.go and cmd/link/internal/ld/pcln.go of Go 1.2 to 1.26). */
#ifndef FGPROF_ELF_GO_PCLNTAB_H
#define FGPROF_ELF_GO_PCLNTAB_H

#include "elf/module.h"

struct pclntab_function {
    uint64_t start, end; /* the code */
    uint64_t record;
    uint32_t name;        /* an offset, like the next three */
    uint32_t frame_table; /* 0: foreign code, of which only the name is known */
    uint32_t file_table, line_table;
    uint32_t unit;
    uint32_t data_table_count; /* tables of other numbers; their offsets follow the record */
    uint32_t data_count;       /* offsets of other data; they follow those */
    bool sets_stack_pointer;   /* other than by adding to it; unknown before Go 1.17 */
};

/* The module's table, found and checked at first use; NULL: there is no usable one. Valid as long
 * as the module. */
const struct pclntab *pclntab_of(struct module *module);

/* Reads one of the functions, which are sorted by address. Returns false if there is none. */
bool pclntab_function(const struct pclntab *table, uint64_t number, struct pclntab_function *ret);

/* Finds the function that holds an address of the module. */
bool pclntab_find(const struct pclntab *table, uint64_t address, struct pclntab_function *ret);

/* By how many bytes the stack pointer is lower at `address` than when the function was entered. */
bool pclntab_frame_bytes(const struct pclntab *table, const struct pclntab_function *function,
                         uint64_t address, uint32_t *ret_bytes);

/* Finds the first address at which the function has a frame, and the frame's size there. Returns
 * false if it never has one. */
bool pclntab_frame_begin(const struct pclntab *table, const struct pclntab_function *function,
                         uint64_t *ret_address, uint32_t *ret_bytes);

#define PCLNTAB_STRING_MAX 4096 /* longer strings are cut */

/* Reads a function's name, given its offset. Returns false if there is none. */
bool pclntab_name(const struct pclntab *table, uint32_t offset, char name[PCLNTAB_STRING_MAX]);

/* Where an address of the function comes from in the source. Returns false if that is unknown. */
bool pclntab_line(const struct pclntab *table, const struct pclntab_function *function,
                  uint64_t address, char file[PCLNTAB_STRING_MAX], uint32_t *ret_line);

/* A function that was inlined at an address. */
struct pclntab_inlined {
    uint32_t name;         /* an offset */
    uint64_t call_address; /* an address of the place that it was called from: look that up next */
};

/* Finds the innermost function that was inlined at an address of `function`. Returns false if there
 * is none. */
bool pclntab_inlined(const struct pclntab *table, const struct pclntab_function *function,
                     uint64_t address, struct pclntab_inlined *ret);

/* ---- Between the files of this subject ---- */

/* Finds and checks a module's table. Returns false if there is no usable one. */
bool pclntab_open(struct pclntab *table, struct module *module);

/* The runtime's record of the file that the table is in (struct moduledata). */
struct go_module {
    uint64_t text, inline_data;
};

/* Finds it by its pointers to the table. Returns false if it is not found. */
bool go_module_find(const struct pclntab *table, struct go_module *ret);

#endif
