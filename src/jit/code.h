/* Code that a process generates: what function is where, by what the process itself says.
 *
 * Two tables. Symbols: in the order in which they were announced, never taken away. Ranges: which
 * of them holds which addresses now; sorted, and none overlaps another, since the last announced is
 * what is there. Announced symbols are in the ranges only after jit_code_apply. */
#ifndef FGPROF_JIT_CODE_H
#define FGPROF_JIT_CODE_H

#include "base/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of one program: several times what large ones have. At the most some 200 MB. */
#define JIT_SYMBOLS_MAX (1u << 20)
#define JIT_LINES_MAX (4u << 20)
#define JIT_TEXT_BYTES_MAX (64u << 20) /* of different names and files */
#define JIT_NAME_MAX 1024u             /* bytes; a longer name is cut */
#define JIT_NO_SYMBOL UINT32_MAX

struct jit_symbol {
    uint64_t start, size;
    uint64_t id;                     /* by which it moves; 0 where it has none */
    uint32_t name;                   /* in jit_code.strings */
    uint32_t first_line, line_count; /* in jit_code.lines */
};

struct jit_range {
    uint64_t start, end;
    uint32_t symbol;
};

struct jit_line {    /* of the code from here on */
    uint32_t offset; /* in its symbol */
    uint32_t file;   /* in jit_code.strings */
    uint32_t line;
};

struct jit_ranges {
    struct jit_range *items;
    size_t count;
};

struct jit_code {
    struct jit_symbol *symbols;
    size_t symbol_count, symbol_capacity;
    size_t applied_count;              /* the symbols before are in the ranges */
    struct jit_ranges ranges, pending; /* now; of what is still to be applied, once asked for */
    struct jit_line *lines;
    size_t line_count, line_capacity;
    uint32_t lowest_line_offset; /* of all, once there is any */
    struct strings strings;
    size_t text_bytes;
    struct index by_id; /* symbols that were given one */
};

/* Returns 0 or -ENOMEM. */
int jit_code_init(struct jit_code *code);
void jit_code_free(struct jit_code *code);

/* Announces a symbol: start + size must not overflow. One of no size is left out. The last
 * `line_count` lines are its own. Returns 0, -ENOSPC where there is too much, or -ENOMEM. */
int jit_code_add(struct jit_code *code, uint64_t start, uint64_t size, const char *name,
                 size_t name_bytes, uint32_t line_count);

/* Announces a line of the symbol that is announced next. Errors as above. */
int jit_code_add_line(struct jit_code *code, uint32_t offset, const char *file, size_t file_bytes,
                      uint32_t line);

/* Gives the last symbol an id, unless another has it. Returns 0 or -ENOMEM. */
int jit_code_identify(struct jit_code *code, uint64_t id);

/* Announces that the symbol with this id is at `start` now. Where none has it, nothing is. Errors
 * as above. */
int jit_code_move(struct jit_code *code, uint64_t id, uint64_t start);

/* Sorts what was announced since the last jit_code_apply. Returns 0 or -ENOMEM. */
int jit_code_prepare(struct jit_code *code);

/* After that, puts it over what is there. Returns 0 or -ENOMEM. */
int jit_code_apply(struct jit_code *code);

/* The symbol at an address now, or to come by jit_code_apply; JIT_NO_SYMBOL where there is none. */
uint32_t jit_code_find(const struct jit_code *code, uint64_t address);
uint32_t jit_code_find_pending(const struct jit_code *code, uint64_t address);

/* The line of an address of the symbol, or NULL where none is known. */
const struct jit_line *jit_code_line(const struct jit_code *code, const struct jit_symbol *symbol,
                                     uint64_t address);

#endif
