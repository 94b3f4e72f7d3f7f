#include "symbol/names/go_names.h"
#include "elf/go/pclntab.h"

#include <string.h>

/* Without memory, the string is unknown. */
static const char *keep(struct strings *strings, const char *string)
{
    uint32_t id;
    return strings_intern(strings, string, &id) ? NULL : strings_get(strings, id);
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
static bool add_line(struct strings *strings, const struct pclntab *table,
                     const struct pclntab_function *function, uint32_t name, uint64_t address,
                     struct symbol *symbol)
{
    char string[PCLNTAB_STRING_MAX];
    if (!pclntab_name(table, name, string))
        return false;
    hide_type_arguments(string);
    struct symbol_line *line = &symbol->lines[symbol->line_count];
    *line = (struct symbol_line){0};
    line->name = keep(strings, string);
    if (pclntab_line(table, function, address, string, &line->line))
        line->file = keep(strings, string);
    symbol->line_count += line->name != NULL;
    return line->name != NULL;
}

bool go_names_find(struct module *module, uint64_t address, struct strings *strings,
                   struct symbol *ret_symbol)
{
    const struct pclntab *table = pclntab_of(module);
    struct pclntab_function function;
    struct pclntab_inlined inlined;
    char name[PCLNTAB_STRING_MAX];
    if (!table || !pclntab_find(table, address, &function) ||
        !pclntab_name(table, function.name, name))
        return false;
    ret_symbol->line_count = 0;
    ret_symbol->function_offset = address - function.start;
    ret_symbol->has_debug_info = table->inline_data != 0;
    /* Leaves room for the function itself. A damaged tree may contain a circle. */
    while (ret_symbol->line_count < SYMBOL_LINES_MAX - 1 &&
           pclntab_inlined(table, &function, address, &inlined) &&
           add_line(strings, table, &function, inlined.name, address, ret_symbol)) {
        ret_symbol->lines[ret_symbol->line_count - 1].is_inlined = true;
        address = inlined.call_address;
    }
    return add_line(strings, table, &function, function.name, address, ret_symbol);
}
