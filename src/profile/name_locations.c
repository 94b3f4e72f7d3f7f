#include "profile/name_locations.h"
#include "base/array.h"
#include "elf/module.h"

#include <errno.h>
#include <stdlib.h>

#define ADDRESSES_MAX 1024 /* in one question */

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
    const struct unnamed_location *asked; /* the next one that the reader will name */
    uint64_t addresses[ADDRESSES_MAX];
};

int unnamed_add(struct unnamed *unnamed, struct module *module, uint64_t address, uint32_t location)
{
    return array_append(&unnamed->items, &unnamed->count, &unnamed->capacity,
                        (struct unnamed_location){module, address, location});
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
        int err = profile_add_function(profile, line->shown, line->name,
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
    int order = ORDER(left_module, right_module);
    return order ? order : ORDER(left->address, right->address);
}

static int set_name(struct location_naming *naming, uint32_t location, const struct symbol *symbol,
                    bool is_trampoline)
{
    if (is_trampoline)
        return trampoline_name(naming->profile, location,
                               symbol->line_count ? symbol->lines[0].name : "");
    return symbol->line_count ? set_symbol(naming, location, symbol) : 0;
}

static int take_symbol(void *context, uint64_t address, const struct symbol *symbol,
                       bool is_trampoline)
{
    struct location_naming *naming = context;
    struct name_cache *cache = naming->sources->cache;
    const struct unnamed_location *unnamed = naming->asked++;
    int err =
        cache ? name_cache_add(cache, unnamed->module->serial, address, symbol, is_trampoline) : 0;
    return err ? err : set_name(naming, unnamed->location, symbol, is_trampoline);
}

/* Requests the names of these locations, which are in one module. */
static int ask(struct location_naming *naming, const struct unnamed_location *unnamed, size_t count)
{
    const struct name_sources *sources = naming->sources;
    const char *why;
    if (!count)
        return 0;
    for (size_t i = 0; i < count; i++)
        naming->addresses[i] = unnamed[i].address;
    naming->asked = unnamed;
    const struct reader_question question = {
        .module = unnamed->module,
        .addresses = naming->addresses,
        .count = count,
        .names = sources->names,
        .fetch = sources->fetch,
    };
    int err = reader_ask(sources->reader, &question, take_symbol, naming, &why);
    if (err != -ENOEXEC)
        return err;
    const char *unread = question.module->is_readable ? NULL : question.module->unread;
    return profile_add_unreadable(naming->profile, question.module->path, unread ? unread : why);
}

/* Takes it from the cache. Returns 0, -ENOENT if it is not there, or -ENOMEM. */
static int recall(struct location_naming *naming, const struct unnamed_location *unnamed)
{
    struct name_cache *cache = naming->sources->cache;
    struct symbol symbol;
    bool is_trampoline;
    if (!cache ||
        !name_cache_get(cache, unnamed->module->serial, unnamed->address, &symbol, &is_trampoline))
        return -ENOENT;
    return set_name(naming, unnamed->location, &symbol, is_trampoline);
}

/* Those that follow each other, are of one module and not in the cache are asked for together. */
int name_locations(struct fgprof_profile *profile, struct unnamed *unnamed,
                   const struct name_sources *sources)
{
    struct location_naming naming = {.profile = profile, .sources = sources};
    const struct unnamed_location *items = unnamed->items;
    size_t first = 0, count = 0;
    int err = 0;
    array_sort(unnamed->items, unnamed->count, compare_modules);
    for (size_t i = 0; i < unnamed->count && !err; i++) {
        int recalled = recall(&naming, &items[i]);
        if (count && (recalled != -ENOENT || count == ADDRESSES_MAX ||
                      items[i].module != items[first].module)) {
            err = ask(&naming, items + first, count);
            count = 0;
        }
        if (!err && recalled != -ENOENT)
            err = recalled;
        else if (!err && !count++)
            first = i;
    }
    return err ? err : ask(&naming, items + first, count);
}

/* Generated code with names has its own mapping, so that it can claim to be symbolized. pprof does
 * not look for a file if the mapping's name begins with a bracket (Mapping.Unsymbolizable in
 * google/pprof's profile/profile.go). */
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

int name_jit_location(struct fgprof_profile *profile, const struct name_sources *sources,
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
    const char *shown = reader_show(sources->reader, name, sources->names);
    int err =
        profile_add_function(profile, shown ? shown : name, name,
                             line ? strings_get(&code->strings, line->file) : "", &row.function);
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
