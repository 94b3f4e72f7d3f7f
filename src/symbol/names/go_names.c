#include "symbol/names/go_names.h"
#include "base/strings.h"
#include "elf/go/pclntab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct go_names {
    struct pclntab table;
    struct strings strings;
};

int go_names_open(struct module *module, struct go_names **ret_names)
{
    struct pclntab table;
    if (!pclntab_open(&table, module))
        return -ENOENT;
    struct go_names *names = calloc(1, sizeof *names);
    if (!names || strings_init(&names->strings)) {
        go_names_close(names);
        return -ENOMEM;
    }
    names->table = table;
    *ret_names = names;
    return 0;
}

void go_names_close(struct go_names *names)
{
    if (!names)
        return;
    strings_free(&names->strings);
    free(names);
}

/* Without memory, the string is unknown. */
static const char *keep(struct go_names *names, const char *string)
{
    uint32_t id;
    return strings_intern(&names->strings, string, &id) ? NULL : strings_get(&names->strings, id);
}

/* Replaces the type arguments of a generic function by "...". Go 1.19 does this when it links; Go
 * 1.26 leaves them in the table, and its runtime does it in the traces and profiles that it writes
 * (funcNameForPrint of runtime/traceback.go). The dots always fit, because no type has a shorter
 * name than `int`. */
static void hide_type_arguments(char name[PCLNTAB_STRING_MAX])
{
    static const char hidden[] = "[...]";
    char *first = strchr(name, '['), *last = strrchr(name, ']');
    size_t hidden_bytes = sizeof hidden - 1;
    if (!first || !last || last < first || (size_t)(last + 1 - first) < hidden_bytes)
        return;
    memmove(first + hidden_bytes, last + 1, strlen(last + 1) + 1);
    memcpy(first, hidden, hidden_bytes);
}

/* Adds the function with that name, at the line of `address`. */
static bool add_line(struct go_names *names, const struct pclntab_function *function, uint32_t name,
                     uint64_t address, struct symbol *symbol)
{
    char string[PCLNTAB_STRING_MAX];
    if (!pclntab_name(&names->table, name, string))
        return false;
    hide_type_arguments(string);
    struct symbol_line *line = &symbol->lines[symbol->line_count];
    *line = (struct symbol_line){0};
    line->name = keep(names, string);
    if (pclntab_line(&names->table, function, address, string, &line->line))
        line->file = keep(names, string);
    symbol->line_count += line->name != NULL;
    return line->name != NULL;
}

bool go_names_find(struct go_names *names, uint64_t address, struct symbol *ret_symbol)
{
    struct pclntab_function function;
    struct pclntab_inlined inlined;
    char name[PCLNTAB_STRING_MAX];
    if (!pclntab_find(&names->table, address, &function) ||
        !pclntab_name(&names->table, function.name, name))
        return false;
    ret_symbol->line_count = 0;
    ret_symbol->function_offset = address - function.start;
    ret_symbol->has_debug_info = names->table.inline_data != 0;
    /* Leaves room for the function itself. A damaged tree may contain a circle. */
    while (ret_symbol->line_count < SYMBOL_LINES_MAX - 1 &&
           pclntab_inlined(&names->table, &function, address, &inlined) &&
           add_line(names, &function, inlined.name, address, ret_symbol)) {
        ret_symbol->lines[ret_symbol->line_count - 1].is_inlined = true;
        address = inlined.call_address;
    }
    return add_line(names, &function, function.name, address, ret_symbol);
}
