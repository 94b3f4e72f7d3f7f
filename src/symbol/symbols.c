#include "symbol/symbols.h"
#include "symbol/debug_file.h"
#include "symbol/dwarf/symbols.h"
#include "symbol/names/go_names.h"
#include "symbol/symbol_table.h"
#include "elf/stubs.h"
#include "unwind/cfi/cfi.h"
#include "unwind/code/code_end.h"
#include "unwind/moved_part.h"
#include "elf/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct symbols {
    struct module *module;
    char *stub_name; /* the last one that was returned */
    struct symbol_table table;
    struct cfi_entry *cfi_entry; /* the one read last */
    struct function_range part;  /* the last one that was checked, and its function: */
    uint64_t part_function;      /* 0: none */
    struct debug_symbols debug;
    struct strings go_names;
};

/* Looks in the module's own file, else in one that was split from it. */
static int find_debug_info(struct symbols *symbols, const struct module *module,
                           struct debug_files *files, struct object *object)
{
    char *path;
    if (object_has_section(object, ".debug_info"))
        return debug_symbols_open(&symbols->debug, module, files, object, module->path);
    struct object found;
    int err = debug_file_find(object, files, module->path, &found, &path);
    if (err)
        err = debug_file_fetch(object, files, &found, &path);
    object_close(object);
    if (err)
        return err;
    struct object again;
    int fd = fcntl(found.fd, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0 && object_open_fd(&again, fd) == 0)
        err = symbol_table_add(&symbols->table, &again);
    if (err)
        object_close(&found);
    else
        err = debug_symbols_open(&symbols->debug, module, files, &found, path);
    free(path);
    return err;
}

/* Puts an error of module.h into words. */
static const char *why_unread(int err)
{
    switch (err) {
    case -ENOEXEC:
        return "not a valid ELF file";
    case -ENOENT:
        return "deleted";
    case -ESTALE:
        return "replaced by another file";
    case -ENXIO:
        return "not a regular file";
    case -EMFILE:
        return "too many open files";
    default:
        return strerror(-err);
    }
}

static int open_object(const struct module *module, struct object *ret_object)
{
    if (module->is_readable)
        return object_open_module(ret_object, module);
    return module->error ? module->error : -ENOEXEC;
}

static int read_module(struct symbols *symbols, const struct module *module,
                       struct debug_files *files, const char **ret_why)
{
    struct object object;
    int err = open_object(module, &object);
    *ret_why = why_unread(err ? err : -ENOEXEC);
    if (err)
        return err == -ENOMEM ? err : -ENOEXEC;
    if (!object_is_whole(&object)) {
        *ret_why = "damaged or cut short";
        object_close(&object);
        return -ENOEXEC;
    }
    err = symbol_table_add(&symbols->table, &object);
    if (!err && object_open_module(&object, module) == 0)
        err = find_debug_info(symbols, module, files, &object);
    symbol_table_finish(&symbols->table);
    return err == -ENOMEM ? err : 0;
}

int symbols_open(struct module *module, struct debug_files *files, struct symbols **ret_symbols,
                 const char **ret_why)
{
    struct symbols *symbols = calloc(1, sizeof *symbols);
    if (!symbols)
        return -ENOMEM;
    symbols->module = module;
    symbols->cfi_entry = malloc(sizeof *symbols->cfi_entry);
    int err = symbols->cfi_entry ? read_module(symbols, module, files, ret_why) : -ENOMEM;
    if (err) {
        symbols_close(symbols);
        return err;
    }
    *ret_symbols = symbols;
    return 0;
}

void symbols_close(struct symbols *symbols)
{
    if (!symbols)
        return;
    debug_symbols_close(&symbols->debug);
    symbol_table_free(&symbols->table);
    free(symbols->cfi_entry);
    strings_free(&symbols->go_names);
    free(symbols->stub_name);
    free(symbols);
}

static bool is_mangled(const char *name)
{
    return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || name[1] == 'D');
}

/* Whether the symbol table has the better name for a function that begins where the symbol does: a
 * name that includes the scope (clang's -g1 omits it), or the exported name instead of the
 * implementation's own ("___pthread_cond_wait" in the C library). */
static bool is_better_in_table(const char *symbol, bool is_exported, const char *name)
{
    return !is_mangled(name) && (is_mangled(symbol) || (is_exported && name[0] == '_'));
}

#define SIZELESS_BYTES_MAX (64u << 10) /* no function without a size is followed further */

/* Whether a function without a size extends to `address`. In a stripped file it may be followed by
 * other functions that have no symbols. */
static bool reaches(struct symbols *symbols, const struct symbol_found *found, uint64_t address)
{
    struct module *module = symbols->module;
    struct cfi_entry *entry = symbols->cfi_entry;
    uint64_t limit = found->start + SIZELESS_BYTES_MAX;
    if (cfi_find(module, found->start, entry) == 0)
        return address < entry->end;
    if (cfi_find(module, address, entry) == 0)
        return false;
    return address <
           code_end_of_function(module, found->start, found->end < limit ? found->end : limit);
}

static void find_in_table(struct symbols *symbols, uint64_t address, struct symbol_found *ret_found)
{
    symbol_table_find(&symbols->table, address, ret_found);
    if (ret_found->name && !ret_found->has_size && !reaches(symbols, ret_found, address))
        *ret_found = (struct symbol_found){0};
}

/* A stub of the linkage table has no symbol: it is named after what it calls, as in gdb. */
static void find_stub(struct symbols *symbols, uint64_t address, struct symbol *symbol)
{
    const struct stub *stub = stubs_find(symbols->module, address);
    struct symbol_found resolver;
    if (!stub)
        return;
    const char *name = stub->name;
    if (!name) {
        symbol_table_find(&symbols->table, stub->resolver, &resolver);
        name = resolver.name;
    }
    free(symbols->stub_name);
    if (!name || asprintf(&symbols->stub_name, "%s@plt", name) < 0) {
        symbols->stub_name = NULL;
        return;
    }
    symbol->lines[symbol->line_count++] = (struct symbol_line){.name = symbols->stub_name};
    symbol->function_offset = address - stub->start;
}

/* In a stripped file, the part of a function that the compiler moved has no symbol; it is named
 * after its function. */
static void find_moved_part(struct symbols *symbols, uint64_t address, struct symbol *symbol)
{
    struct function_range *part = &symbols->part;
    struct symbol_found function;
    bool is_known = address >= part->start && address < part->end;
    if (!is_known && cfi_find(symbols->module, address, symbols->cfi_entry) == 0) {
        struct rule_tables tables = {0};
        *part = (struct function_range){symbols->cfi_entry->start, symbols->cfi_entry->end};
        symbols->part_function = moved_part_function(&tables, symbols->module, part);
        rule_tables_free(&tables);
        is_known = true;
    }
    if (!is_known || !symbols->part_function)
        return;
    symbol_table_find(&symbols->table, symbols->part_function, &function);
    if (!function.name || function.start != symbols->part_function)
        return;
    symbol->lines[symbol->line_count++] = (struct symbol_line){.name = function.name};
    symbol->function_offset = address - part->start;
}

void symbols_find(struct symbols *symbols, uint64_t address, struct symbol *ret_symbol)
{
    struct symbol_found found;
    uint64_t debug_start;
    ret_symbol->line_count = 0;
    ret_symbol->function_offset = 0;
    ret_symbol->has_debug_info = false;
    /* Go's own table comes before its debug information, so that the names do not change when that
     * is stripped. */
    if (go_names_find(symbols->module, address, &symbols->go_names, ret_symbol))
        return;
    debug_symbols_find(&symbols->debug, address, ret_symbol, &debug_start);
    find_in_table(symbols, address, &found);
    if (found.name)
        ret_symbol->function_offset = address - found.start;
    if (found.name && !ret_symbol->line_count)
        ret_symbol->lines[ret_symbol->line_count++] = (struct symbol_line){0};
    if (!ret_symbol->line_count) {
        find_stub(symbols, address, ret_symbol);
        if (!ret_symbol->line_count)
            find_moved_part(symbols, address, ret_symbol);
        return;
    }
    struct symbol_line *outermost = &ret_symbol->lines[ret_symbol->line_count - 1];
    if (!outermost->name || (found.name && found.start == debug_start &&
                             is_better_in_table(found.name, found.is_exported, outermost->name)))
        outermost->name = found.name;
    /* A line without a function gives no name. */
    if (!outermost->name)
        ret_symbol->line_count--;
}
