#include "symbol/dwarf/symbols.h"
#include "symbol/debug_file.h"

#include <errno.h>
#include <stdio.h>

#define NO_UNIT UINT64_MAX

/* If the file shares some of its information with others, opens the shared file too. */
static int open_info(struct debug_symbols *debug, const struct module *module,
                     struct object *object, const char *path)
{
    struct object supplement;
    bool has_supplement =
        debug_file_find_supplement(object, module->root_fd_plus_1, path, &supplement) == 0;
    int err = debug_info_open(&debug->info, object, false);
    if (has_supplement && err)
        object_close(&supplement);
    if (has_supplement && !err)
        err = debug_info_open(&debug->info->supplement, &supplement, false);
    if (!err && debug->info->supplement)
        err = debug_info_list_units(debug->info->supplement);
    return err;
}

int debug_symbols_open(struct debug_symbols *debug, const struct module *module,
                       struct object *object, const char *path)
{
    debug->unit = NO_UNIT;
    int err = open_info(debug, module, object, path);
    if (!err)
        err = units_read(&debug->units, debug->info);
    if (!err && asprintf(&debug->split.package_path, "%s.dwp", module->path) < 0) {
        debug->split.package_path = NULL;
        err = -ENOMEM;
    }
    return err;
}

void debug_symbols_close(struct debug_symbols *debug)
{
    debug_functions_free(&debug->functions);
    lines_free(&debug->lines);
    names_free(&debug->names);
    units_free(&debug->units);
    split_free(&debug->split);
    debug_info_close(debug->info);
}

/* Reads the unit in place of the one before. What is missing or damaged is left out. */
static int enter_unit(struct debug_symbols *debug, uint64_t at)
{
    struct unit skeleton, split, *unit = &skeleton;
    struct die root;
    if (debug->unit == at)
        return 0;
    debug->unit = at;
    debug->functions.count = 0;
    debug->is_complete = false;
    lines_clear(&debug->lines);
    int err = unit_read(debug->info, at, &skeleton);
    if (!err)
        err = unit_read_root(&skeleton, &root);
    if (err)
        return err == -ENOMEM ? err : 0;
    if (lines_read(&debug->lines, &skeleton, &root) == -ENOMEM)
        return -ENOMEM;
    if (root.dwo_name.form) {
        err = split_read(&debug->split, &skeleton, &root, &split);
        unit = err ? unit : &split;
    }
    debug->is_complete = !err;
    if (err != -ENOMEM)
        err = debug_functions_read(&debug->functions, unit);
    debug->is_complete &= !err;
    return err == -ENOMEM ? err : 0;
}

static uint32_t line_number(const struct value *value)
{
    return value->form && value->number <= UINT32_MAX ? (uint32_t)value->number : 0;
}

/* Adds the innermost function first. Each function's place is where the one before it was
 * called. */
static void add_functions(struct debug_symbols *debug, const struct debug_function *function,
                          uint64_t address, struct symbol_line place, struct symbol *symbol)
{
    const struct unit *unit = &debug->functions.unit;
    for (size_t i = debug->functions.inlined_count; i-- > 0;) {
        const struct inlined_range *call = &debug->functions.inlined[i];
        if (address < call->start || address >= call->end)
            continue;
        place.name = names_get(&debug->names, unit, call->die);
        place.is_inlined = true;
        if (!place.name || symbol->line_count == SYMBOL_LINES_MAX - 1)
            symbol->has_debug_info = false;
        else
            symbol->lines[symbol->line_count++] = place;
        place = (struct symbol_line){
            .file = call->call_file.form ? lines_file(&debug->lines, call->call_file.number) : NULL,
            .line = line_number(&call->call_line),
        };
    }
    place.name = names_get(&debug->names, unit, function->die);
    symbol->lines[symbol->line_count++] = place;
    symbol->function_offset = address - function->start;
}

void debug_symbols_find(struct debug_symbols *debug, uint64_t address, struct symbol *symbol,
                        uint64_t *ret_start)
{
    uint64_t unit;
    *ret_start = UINT64_MAX;
    names_forget_many(&debug->names);
    if (!debug->info || !units_find(&debug->units, address, &unit) || enter_unit(debug, unit))
        return;
    const struct line_row *row = lines_find(&debug->lines, address);
    struct symbol_line place = {0};
    if (row) {
        place.file = lines_file(&debug->lines, row->file);
        place.line = row->line;
    }
    symbol->has_debug_info = debug->is_complete;
    const struct debug_function *function = debug_functions_find(&debug->functions, address);
    if (function) {
        add_functions(debug, function, address, place, symbol);
        *ret_start = function->start;
    } else if (place.file) {
        symbol->lines[symbol->line_count++] = place;
    }
}
