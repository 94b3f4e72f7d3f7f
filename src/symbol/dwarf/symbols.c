#include "symbol/dwarf/symbols.h"
#include "symbol/debug_file.h"
#include "symbol/dwarf/ranges.h"
#include "elf/dwarf.h"
#include "base/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHAIN_MAX 16 /* a longer one is a circle */
#define KEPT_BYTES_MAX ((size_t)32 << 20)

static void names_free(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i].name);
    free(names->items);
    index_free(&names->index);
    *names = (struct names){0};
}

/* Frees memory if there are very many names. */
static void names_forget_many(struct names *names)
{
    if (names->bytes > KEPT_BYTES_MAX)
        names_free(names);
}

static bool holds(const struct unit *unit, const struct debug_info *info, uint64_t at)
{
    return unit->info == info && at >= unit->first_die && at < unit->end;
}

static void take(char **name, const struct unit *unit, const struct value *value)
{
    const char *text = !*name && value->form ? value_string(unit, value) : NULL;
    if (text)
        *name = strdup(text);
}

static char *find(struct names *names, const struct unit *home, uint64_t at)
{
    struct unit unit = *home;
    struct debug_info *info = home->info;
    char *linkage_name = NULL, *name = NULL;
    for (int i = 0; i < CHAIN_MAX && !linkage_name; i++) {
        struct die die;
        if (!holds(&unit, info, at)) {
            if (!holds(&names->other, info, at) && unit_read_around(info, at, &names->other))
                break;
            unit = names->other;
        }
        if (!die_read_at(&unit, at, &die))
            break;
        take(&linkage_name, &unit, &die.linkage_name);
        take(&name, &unit, &die.name);
        const struct value *next = die.origin.form ? &die.origin : &die.specification;
        if (!value_reference(&unit, next, &info, &at))
            break;
    }
    if (!linkage_name)
        return name;
    free(name);
    return linkage_name;
}

/* The linker name, or else the source name, of the entry at `die` of `unit`: its own, or the name
 * of the abstract function or declaration that it refers to. NULL: there is none, or memory is
 * short. Valid until names_forget_many or enter_unit. */
static const char *names_get(struct names *names, const struct unit *unit, uint64_t die)
{
    struct known_name name = {.info = unit->info, .die = die};
    uint32_t number;
    size_t before = names->count;
    if (INDEX_INTERN(&names->index, offsetof(struct known_name, name), &name, &names->items,
                     &names->count, &names->capacity, &number))
        return NULL;
    struct known_name *known = &names->items[number];
    if (names->count > before) {
        known->name = find(names, unit, die);
        names->bytes += sizeof *known + (known->name ? strlen(known->name) : 0);
    }
    return known->name;
}

/* The search goes backwards, so this puts the one that comes first in the file first. */
static int compare(const void *a, const void *b)
{
    const struct entry_range *left = a, *right = b;
    return left->start != right->start ? ORDER(left->start, right->start)
                                       : ORDER(right->at, left->at);
}

/* Lists the units of `info`, reading only the root entry of each. Skips what can't be read, and
 * what is too much. Returns 0 or -ENOMEM. */
static int units_read(struct entry_ranges *units, struct debug_info *info)
{
    struct code_ranges ranges = {0};
    int err = debug_info_list_units(info);
    for (size_t i = 0; i < info->unit_count && err != -ENOMEM; i++) {
        struct unit unit;
        struct die root;
        if (unit_read(info, info->units[i], &unit) ||
            (unit.type != DW_UT_compile && unit.type != DW_UT_skeleton) ||
            unit_read_root(&unit, &root))
            continue;
        err = ranges_read(&ranges, &unit, &root);
        if (!err)
            err = entry_ranges_add(units, &ranges, unit.at);
    }
    ranges_free(&ranges);
    entry_ranges_sort(units, compare);
    return err == -ENOMEM ? err : 0;
}

#define NO_UNIT UINT64_MAX

/* If the file shares some of its information with others, opens the shared file too. */
static int open_info(struct debug_symbols *debug, struct debug_files *files, struct object *object,
                     const char *path)
{
    struct object supplement;
    bool has_supplement = debug_file_find_supplement(object, files, path, &supplement) == 0;
    int err = debug_info_open(&debug->info, object, false);
    if (has_supplement && err)
        object_close(&supplement);
    if (has_supplement && !err)
        err = debug_info_open(&debug->info->supplement, &supplement, false);
    if (err == -ENOEXEC && debug->info)
        err = 0; /* what the shared file has is missing then */
    if (!err && debug->info->supplement)
        err = debug_info_list_units(debug->info->supplement);
    return err;
}

int debug_symbols_open(struct debug_symbols *debug, const struct module *module,
                       struct debug_files *files, struct object *object, const char *path)
{
    debug->unit = NO_UNIT;
    debug->split.files = files;
    int err = open_info(debug, files, object, path);
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
    free(debug->units.items);
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
    debug->functions.ranges.count = 0;
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
        /* They are known by where their file is in memory, and the next one may be there. */
        names_free(&debug->names);
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

/* Adds the innermost function first. Each later function's line is where the one before it was
 * called. */
static void add_functions(struct debug_symbols *debug, const struct entry_range *function,
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
    place.name = names_get(&debug->names, unit, function->at);
    symbol->lines[symbol->line_count++] = place;
    symbol->function_offset = address - function->start;
}

void debug_symbols_find(struct debug_symbols *debug, uint64_t address, struct symbol *symbol,
                        uint64_t *ret_start)
{
    const struct entry_range *unit = entry_ranges_find(&debug->units, address);
    *ret_start = UINT64_MAX;
    names_forget_many(&debug->names);
    if (!debug->info || !unit || enter_unit(debug, unit->at))
        return;
    const struct line_row *row = lines_find(&debug->lines, address);
    struct symbol_line place = {0};
    if (row) {
        place.file = lines_file(&debug->lines, row->file);
        place.line = row->line;
    }
    symbol->has_debug_info = debug->is_complete;
    const struct entry_range *function = debug_functions_find(&debug->functions, address);
    if (function) {
        add_functions(debug, function, address, place, symbol);
        *ret_start = function->start;
    } else if (place.file) {
        symbol->lines[symbol->line_count++] = place;
    }
}
