/* What is looked up while sampling in a module's headers and in its tables of symbols, sections and
 * functions, apart from what unwinding needs (unwind/lookup.h).
 *
 * A target, or the author of its files, controls these. So a process without privileges does the
 * lookups, and its answers are checked (see reader/lookup_reader.h), so they can be wrong only in
 * ways that the file itself may be. The sampling process itself reads what the answers lead to: the
 * target's memory, which only it may read, and a few bytes at an address of the file (module_read).
 */
#ifndef FGPROF_ELF_QUERY_H
#define FGPROF_ELF_QUERY_H

#include "elf/module.h"

enum query_kind {
    QUERY_SYMBOL,      /* where the symbol of that name and type is: see dynamic_symbol_find */
    QUERY_SECTION,     /* where the section of that name is in memory */
    QUERY_NAME,        /* the function that holds an address, from the symbol tables, including
                          those that were split from the file */
    QUERY_GO_FUNCTION, /* the same, from Go's function table */
    QUERY_GO,          /* what of Go's runtime is where */
    QUERY_KINDS
};

struct query {
    enum query_kind kind;
    uint64_t address;   /* as in the file; for QUERY_NAME and QUERY_GO_FUNCTION */
    const char *name;   /* for QUERY_SYMBOL and QUERY_SECTION */
    unsigned char type; /* STT_OBJECT ...; for QUERY_SYMBOL */
};

#define QUERY_TEXT_BYTES 4096 /* longer texts are cut */

struct query_function {
    uint64_t start;
    char name[QUERY_TEXT_BYTES];
    /* Only from Go's table: */
    char innermost[QUERY_TEXT_BYTES]; /* the innermost function inlined there; "": none */
    char file[QUERY_TEXT_BYTES];
    uint32_t line; /* 0: not known, nor is the file */
};

#define GO_IDLE_FUNCTIONS_MAX 8

/* In the module's own addresses. */
struct go_runtime {
    unsigned minor;               /* of Go 1.minor; 0: not known */
    struct function_range adding; /* runtime.allgadd; empty: not found */
    /* The functions that a thread is in while it has no goroutine. */
    struct function_range idle[GO_IDLE_FUNCTIONS_MAX];
    size_t idle_count;
};

union query_answer {
    struct module_part part; /* QUERY_SYMBOL, QUERY_SECTION */
    struct query_function function;
    struct go_runtime go;
};

/* The interface of something that looks these things up. */
struct queries {
    /* Does elf_file_read for a module that has its number and serial. Returns the same; -EAGAIN if
     * the module can't be read at present; or -EIO if reading it failed: module->unread says why.
     */
    int (*read)(struct queries *queries, struct module *module);
    /* Returns 0; -ENOENT if the module has none; -ENOEXEC if it can't be read, now or later;
     * -EAGAIN if it can't be read at present; or -ENOMEM. */
    int (*ask)(struct queries *queries, struct module *module, const struct query *query,
               union query_answer *ret_answer);
};

/* Return 0 or an error as above; -ENOENT also for -ENOEXEC. If `queries` is NULL or zeroed, nothing
 * is found. */
int query_ask(struct queries *queries, struct module *module, const struct query *query,
              union query_answer *ret_answer);
int query_symbol(struct queries *queries, struct module *module, const char *name,
                 unsigned char type, struct module_part *ret_symbol);

#endif
