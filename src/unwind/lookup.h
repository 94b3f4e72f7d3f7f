/* What unwinding looks up in a module's unwind tables, symbol tables and code; and what a program
 * says of code that it generates.
 *
 * A target, or the author of its files, controls these. So while sampling, a process without
 * privileges looks things up, and its answers are checked (see reader/lookup_reader.h).
 *
 * What is looked up by name goes the same way, and so do headers: see elf/query.h.
 *
 * The process that samples still reads itself:
 *   - bytes at an address of a file, whose meaning is known (module_read): numbers that a symbol
 *     stands for, the code of a function that is searched for references or jumps, a few bytes of
 *     code that are compared with those of calls, returns and trampolines (code/calls.h);
 *   - generated code, which is copied from memory and in no file (rule_from_bytes). */
#ifndef FGPROF_UNWIND_LOOKUP_H
#define FGPROF_UNWIND_LOOKUP_H

#include "elf/query.h"
#include "jit/source.h"
#include "unwind/code/prologue.h"
#include "unwind/rule.h"

enum lookup_kind {
    LOOKUP_RULE,     /* the rule of an address */
    LOOKUP_FUNCTION, /* the start of the function that holds it, from Go's function table, call
                        frame information, or else the symbol table; 0 if none of them has it */
    LOOKUP_RETURNS,  /* its rule by the code from there to its function's returns alone: see
                        rule_from_returns */
    LOOKUP_PROLOGUE, /* how far below the frame pointer its function may have the stack pointer */
    LOOKUP_KINDS
};

struct lookup {
    enum lookup_kind kind;
    uint64_t address;  /* the module's own */
    uint64_t function; /* for LOOKUP_PROLOGUE: where its function begins */
};

struct lookup_prologue {
    uint64_t distances[PROLOGUE_CANDIDATES_MAX]; /* in bytes, the likeliest first */
    uint32_t count;
};

union lookup_answer {
    struct rule rule; /* LOOKUP_RULE, LOOKUP_RETURNS */
    uint64_t function;
    struct lookup_prologue prologue;
};

/* The interface of something that looks things up. */
struct lookups {
    struct queries queries; /* see elf/query.h; nothing is found if it is zeroed */
    /* Returns 0; -ENOEXEC if the module can't be read, and will not be; -EAGAIN if it can't be at
     * present; or -ENOMEM. */
    int (*find)(struct lookups *lookups, struct module *module, const struct lookup *lookup,
                union lookup_answer *ret_answer);
    /* Does jit_source_read. Errors as above: -ENOEXEC if the file can't be read, and will not be.
     */
    int (*read_code)(struct lookups *lookups, const struct jit_source *source, off_t most,
                     struct jit_reading *reading);
};

/* Looks it up in this process. `scratch` is overwritten. Returns 0 or -ENOMEM. */
int module_look_up(struct module *module, const struct lookup *lookup, struct cfi_entry *scratch,
                   union lookup_answer *ret_answer);

struct own_lookups {
    struct lookups lookups; /* by that */
    struct cfi_entry *scratch;
};

void own_lookups_init(struct own_lookups *own);
void own_lookups_free(struct own_lookups *own);

#endif
