/* Answers queries while sampling (elf/query.h), in this process. */
#ifndef FGPROF_SYMBOL_MODULE_QUERY_H
#define FGPROF_SYMBOL_MODULE_QUERY_H

#include "elf/query.h"
#include "symbol/debug_file.h"
#include "symbol/symbol_table.h"

/* The symbols of one module, once they were read. Starts zeroed. */
struct module_names {
    struct symbol_table table;
    bool has_table;
};

/* `files` opens symbols that are in a file separate from the module's. Returns 0, -ENOENT or
 * -ENOMEM. */
int module_query(struct module_names *names, struct module *module, struct debug_files *files,
                 const struct query *query, union query_answer *ret_answer);
void module_names_free(struct module_names *names);

#endif
