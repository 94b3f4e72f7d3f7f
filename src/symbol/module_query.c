#include "symbol/module_query.h"
#include "elf/dynamic_symbol.h"
#include "runtime/go/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(QUERY_TEXT_BYTES == PCLNTAB_STRING_MAX, "names of Go fit");

static bool find_section(struct module *module, const char *name, struct module_part *ret_section)
{
    Elf *elf = module_open_elf(module);
    Elf_Scn *scn = NULL;
    GElf_Shdr header;
    const char *found;
    bool is_found = false;
    while (elf && !is_found && (scn = bounded_elf_next_section(elf, scn, &header, &found)))
        is_found = header.sh_addr && strcmp(found, name) == 0;
    elf_end(elf);
    if (is_found)
        *ret_section = (struct module_part){header.sh_addr, header.sh_size};
    return is_found;
}

/* ---- By the symbol tables ---- */

/* Some functions are only named in the symbols that were split from the file. */
static int add_split_names(struct symbol_table *table, const struct module *module,
                           struct debug_files *files)
{
    struct object object, found;
    char *path;
    if (object_open_module(&object, module))
        return 0;
    int err = debug_file_find(&object, files, module->path, &found, &path);
    object_close(&object);
    if (err)
        return err == -ENOMEM ? err : 0;
    free(path);
    return symbol_table_add(table, &found);
}

static int read_table(struct symbol_table *table, const struct module *module,
                      struct debug_files *files)
{
    struct object object;
    if (object_open_module(&object, module))
        return 0;
    int err = symbol_table_add(table, &object);
    if (!err)
        err = add_split_names(table, module, files);
    symbol_table_finish(table);
    return err;
}

static int find_name(struct module_names *names, const struct module *module,
                     struct debug_files *files, uint64_t address,
                     struct query_function *ret_function)
{
    struct symbol_found found;
    if (!names->has_table) {
        int err = read_table(&names->table, module, files);
        if (err) {
            symbol_table_free(&names->table);
            return err;
        }
    }
    names->has_table = true;
    symbol_table_find(&names->table, address, &found);
    if (!found.name)
        return -ENOENT;
    ret_function->start = found.start;
    snprintf(ret_function->name, sizeof ret_function->name, "%s", found.name);
    return 0;
}

/* ---- By Go's table ---- */

static int find_go_function(const struct pclntab *go, uint64_t address,
                            struct query_function *ret_function)
{
    struct pclntab_function function;
    struct pclntab_inlined inlined;
    if (!go || !pclntab_find(go, address, &function) ||
        !pclntab_name(go, function.name, ret_function->name))
        return -ENOENT;
    ret_function->start = function.start;
    if (!pclntab_inlined(go, &function, address, &inlined) ||
        !pclntab_name(go, inlined.name, ret_function->innermost))
        *ret_function->innermost = '\0';
    if (!pclntab_line(go, &function, address, ret_function->file, &ret_function->line))
        ret_function->line = 0;
    return 0;
}

static int find_runtime(const struct pclntab *go, struct go_runtime *ret_runtime)
{
    if (!go)
        return -ENOENT;
    go_file_read(go, ret_runtime);
    return 0;
}

int module_query(struct module_names *names, struct module *module, struct debug_files *files,
                 const struct query *query, union query_answer *ret_answer)
{
    memset(ret_answer, 0, sizeof *ret_answer);
    switch (query->kind) {
    case QUERY_SYMBOL:
        return dynamic_symbol_find(module, query->name, query->type, &ret_answer->part) ? 0
                                                                                        : -ENOENT;
    case QUERY_SECTION:
        return find_section(module, query->name, &ret_answer->part) ? 0 : -ENOENT;
    case QUERY_NAME:
        return find_name(names, module, files, query->address, &ret_answer->function);
    case QUERY_GO_FUNCTION:
        return find_go_function(pclntab_of(module), query->address, &ret_answer->function);
    case QUERY_GO:
        return find_runtime(pclntab_of(module), &ret_answer->go);
    case QUERY_KINDS:
        break;
    }
    return -ENOENT;
}

void module_names_free(struct module_names *names)
{
    symbol_table_free(&names->table);
    *names = (struct module_names){0};
}
