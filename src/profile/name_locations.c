#include "profile/name_locations.h"
#include "base/array.h"
#include "symbol/names/demangle.h"
#include "unwind/signal_frame.h"
#include "elf/module.h"

#include <errno.h>
#include <stdlib.h>

/* Whether signal handlers return to this address of the module. Most builds of libc have no symbol
 * for it. Nothing calls it: if a stack leads through it, the kernel called the handler. */
static bool trampoline_is_at(struct module *module, uint64_t address)
{
    uint8_t code[SIGNAL_RETURN_BYTES];
    return module_read(module, address, code, sizeof code) && signal_return_is_at(code);
}

/* Names the location "<signal handler called>", as gdb does. `symbol` is its name in the symbol
 * table, or "". Returns 0 or -ENOMEM. */
static int trampoline_name(struct fgprof_profile *profile, uint32_t location, const char *symbol)
{
    struct profile_line line = {0};
    /* pprof removes what is in <> from a name that equals its symbol. */
    int err = profile_add_function(profile, "<signal handler called>", symbol, "", &line.function);
    return err ? err : profile_set_lines(profile, location, &line, 1);
}

struct location_naming {
    struct fgprof_profile *profile;
    const struct name_sources *sources;
    struct shown_names *shown;
    struct open_modules *opened;
};

int unnamed_add(struct unnamed *unnamed, struct module *module, uint64_t address, uint32_t location)
{
    if (array_reserve(&unnamed->items, &unnamed->capacity, unnamed->count + 1))
        return -ENOMEM;
    unnamed->items[unnamed->count++] = (struct unnamed_location){module, address, location};
    return 0;
}

void unnamed_free(struct unnamed *unnamed)
{
    free(unnamed->items);
    *unnamed = (struct unnamed){0};
}

static int set_symbol(struct location_naming *naming, uint32_t location,
                      const struct symbol *symbol)
{
    struct fgprof_profile *profile = naming->profile;
    struct profile_line lines[SYMBOL_LINES_MAX];
    for (size_t i = 0; i < symbol->line_count; i++) {
        const struct symbol_line *line = &symbol->lines[i];
        const char *shown = shown_name(naming->shown, line->name, naming->sources->names);
        int err = !shown ? -ENOMEM
                         : profile_add_function(profile, shown, line->name,
                                                line->file ? line->file : "", &lines[i].function);
        if (err)
            return err;
        lines[i].line = line->line;
        lines[i].is_inlined = line->is_inlined;
    }
    profile->locations[location].function_offset = symbol->function_offset;
    profile->locations[location].has_debug_info = symbol->has_debug_info;
    return profile_set_lines(profile, location, lines, symbol->line_count);
}

static int compare_modules(const void *a, const void *b)
{
    const struct unnamed_location *left = a, *right = b;
    uintptr_t left_module = (uintptr_t)left->module, right_module = (uintptr_t)right->module;
    if (left_module != right_module)
        return left_module < right_module ? -1 : 1;
    return (left->address > right->address) - (left->address < right->address);
}

static int set_name(struct location_naming *naming, uint32_t location, const struct symbol *symbol,
                    bool is_trampoline)
{
    if (is_trampoline)
        return trampoline_name(naming->profile, location,
                               symbol->line_count ? symbol->lines[0].name : "");
    return symbol->line_count ? set_symbol(naming, location, symbol) : 0;
}

static int look_up(struct location_naming *naming, const struct unnamed_location *unnamed)
{
    struct symbol symbol;
    struct module *module = unnamed->module;
    struct name_cache *cache = naming->sources->cache;
    const struct open_module *opened;
    bool is_trampoline;
    if (cache && name_cache_get(cache, module->number, unnamed->address, &symbol, &is_trampoline))
        return set_name(naming, unnamed->location, &symbol, is_trampoline);
    int err =
        open_modules_get(naming->opened, module, cache != NULL, naming->sources->fetch, &opened);
    if (err)
        return err;
    if (!opened->symbols)
        return profile_add_unreadable(naming->profile, module->path, opened->why);
    symbols_find(opened->symbols, unnamed->address, &symbol);
    is_trampoline = trampoline_is_at(opened->read, unnamed->address);
    if (cache)
        err = name_cache_add(cache, module->number, unnamed->address, &symbol, is_trampoline);
    return err ? err : set_name(naming, unnamed->location, &symbol, is_trampoline);
}

/* Works module by module, so that without a cache only one module's debug information is in
 * memory. */
int name_locations(struct fgprof_profile *profile, struct unnamed *unnamed,
                   const struct name_sources *sources)
{
    struct shown_names shown = {0};
    struct open_modules opened = {.most = 1};
    struct location_naming naming = {
        .profile = profile,
        .sources = sources,
        .shown = sources->cache ? &sources->cache->shown : &shown,
        .opened = sources->cache ? &sources->cache->opened : &opened,
    };
    int err = 0;
    if (unnamed->count)
        qsort(unnamed->items, unnamed->count, sizeof *unnamed->items, compare_modules);
    for (size_t i = 0; i < unnamed->count && !err; i++)
        err = look_up(&naming, &unnamed->items[i]);
    open_modules_close(&opened);
    shown_names_free(&shown);
    return err;
}

/* Generated code with names has its own mapping, so that it can claim to be symbolized. pprof looks
 * for no file if its name begins with a bracket (Mapping.Unsymbolizable in google/pprof's
 * profile/profile.go). */
#define JIT_MAPPING "[jit]"

static int add_jit_mapping(struct fgprof_profile *profile, const struct mapping *mapping,
                           uint32_t *ret_mapping)
{
    struct profile_mapping row = {
        .start = mapping->start,
        .limit = mapping->end,
        .offset = mapping->offset,
    };
    if (strings_intern(&profile->strings, JIT_MAPPING, &row.path))
        return -ENOMEM;
    return profile_add_mapping(profile, &row, ret_mapping);
}

int name_jit_location(struct fgprof_profile *profile, enum fgprof_names names,
                      const struct space *space, const struct mapping *mapping, uint64_t address,
                      uint32_t *ret_location)
{
    const struct jit_code *code = &space->jit->code;
    const struct jit_symbol *symbol = jit_find(space->jit, space->id, address);
    const struct jit_line *line = jit_code_line(code, symbol, address);
    const char *name = strings_get(&code->strings, symbol->name);
    struct profile_line row = {.line = line ? line->line : 0};
    uint32_t mapping_number;
    bool is_new;
    char *demangled = demangle(name, names);
    int err =
        profile_add_function(profile, demangled ? demangled : name, name,
                             line ? strings_get(&code->strings, line->file) : "", &row.function);
    free(demangled);
    if (!err)
        err = add_jit_mapping(profile, mapping, &mapping_number);
    if (!err)
        err = profile_add_jit_location(profile, address, mapping_number, row.function, ret_location,
                                       &is_new);
    if (err || !is_new)
        return err;
    profile->locations[*ret_location].function_offset = address - symbol->start;
    return profile_set_lines(profile, *ret_location, &row, 1);
}
