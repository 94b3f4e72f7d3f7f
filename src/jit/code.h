/* Code that a process generates: which function is where, as the process itself says.
 *
 * Two tables. Symbols are in the order in which they were announced. Ranges say which symbol holds
 * which addresses now; they are sorted and do not overlap, since the last symbol that was announced
 * for an address is the one there. Announced symbols enter the ranges only with jit_code_apply.
 * Replaced symbols can be removed. */
#ifndef FGPROF_JIT_CODE_H
#define FGPROF_JIT_CODE_H

#include "base/renumber.h"
#include "base/strings.h"

#include <stddef.h>
#include <stdint.h>

/* Limits for one program on what is kept at a time: several times what large programs need. About
 * 200 MB at most. */
#define JIT_SYMBOLS_MAX (1u << 20)
#define JIT_LINES_MAX (4u << 20)
#define JIT_TEXT_BYTES_MAX (64u << 20) /* of distinct names and files */
#define JIT_NAME_MAX 1024u             /* bytes; longer names are cut */
#define JIT_NO_SYMBOL UINT32_MAX

struct jit_symbol {
    uint64_t id; /* identifies it when it moves; 0: none */
    uint64_t start, size;
    uint32_t name;                   /* in jit_code.strings */
    uint32_t first_line, line_count; /* in jit_code.lines */
};

struct jit_range {
    uint64_t start, end;
    uint32_t symbol;
};

struct jit_line {    /* the line of the code from `offset` on */
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
    size_t applied_count;              /* the symbols before this one are in the ranges */
    struct jit_ranges ranges, pending; /* the current ones; those sorted by jit_code_prepare but not
                                          yet applied */
    struct jit_line *lines;
    size_t line_count, line_capacity;
    size_t claimed_line_count;   /* the lines before this one belong to symbols */
    uint32_t lowest_line_offset; /* of all lines, even those that were removed */
    struct strings strings;
    struct index by_id; /* symbols that have an id */
};

/* Returns 0 or -ENOMEM. */
int jit_code_init(struct jit_code *code);
void jit_code_free(struct jit_code *code);

/* Announces a symbol; start + size must not overflow. A symbol of size 0 is left out. The last
 * `line_count` lines belong to it, except those that belong to another symbol. Returns 0, -ENOSPC
 * if a limit is reached, or -ENOMEM. */
int jit_code_add(struct jit_code *code, uint64_t start, uint64_t size, const char *name,
                 size_t name_bytes, uint32_t line_count);

/* Announces a line of the next symbol. Errors as above. */
int jit_code_add_line(struct jit_code *code, uint32_t offset, const char *file, size_t file_bytes,
                      uint32_t line);

/* Gives the last symbol an id, unless another symbol has it. Returns 0 or -ENOMEM. */
int jit_code_identify(struct jit_code *code, uint64_t id);

/* Announces that the symbol with this id is now at `start`. If none has it, nothing happens. Errors
 * as above. */
int jit_code_move(struct jit_code *code, uint64_t id, uint64_t start);

/* Sorts the symbols that were announced since the last jit_code_apply. Returns 0 or -ENOMEM. */
int jit_code_prepare(struct jit_code *code);

/* Puts what jit_code_prepare sorted over the ranges. Returns 0 or -ENOMEM. */
int jit_code_apply(struct jit_code *code);

/* Copies the symbols that `needed` keeps, with their lines but without ranges, to `code`, which
 * was just initialized. Returns 0 or -ENOMEM. */
int jit_code_copy(struct jit_code *code, const struct jit_code *from,
                  const struct renumber *needed);

/* Removes replaced symbols that `needed` does not keep, if there are many. The others get new
 * numbers, which are then in `needed`. Returns 0, or -ENOMEM, and then nothing has changed. */
int jit_code_keep(struct jit_code *code, struct renumber *needed);

/* Whether no limit is nearly reached. */
bool jit_code_has_room(const struct jit_code *code);

/* The symbol that is at an address now, or that jit_code_apply will put there; JIT_NO_SYMBOL if
 * there is none. */
uint32_t jit_code_find(const struct jit_code *code, uint64_t address);
uint32_t jit_code_find_pending(const struct jit_code *code, uint64_t address);

/* The line of an address of the symbol, or NULL if none is known. */
const struct jit_line *jit_code_line(const struct jit_code *code, const struct jit_symbol *symbol,
                                     uint64_t address);

#endif
