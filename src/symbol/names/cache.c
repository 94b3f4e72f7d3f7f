#include "symbol/names/cache.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

/* In profiles: those of one request for another are of different parts of the recording. */
#define AGE_MAX 64
#define LIMIT_MIN 10000 /* addresses, some 2 MB */

int name_cache_init(struct name_cache *cache)
{
    *cache = (struct name_cache){.limit = LIMIT_MIN};
    return strings_init(&cache->strings);
}

void name_cache_free(struct name_cache *cache)
{
    strings_free(&cache->strings);
    free(cache->addresses);
    free(cache->lines);
    index_free(&cache->index);
    *cache = (struct name_cache){0};
}

size_t name_cache_bytes(const struct name_cache *cache)
{
    return strings_bytes(&cache->strings) + cache->address_capacity * sizeof *cache->addresses +
           cache->line_capacity * sizeof *cache->lines +
           cache->index.slot_count * sizeof *cache->index.slots;
}

#define KEY_BYTES offsetof(struct cached_address, line_count)

bool name_cache_get(struct name_cache *cache, uint32_t module, uint64_t address,
                    struct symbol *ret_symbol, bool *ret_is_trampoline)
{
    const struct cached_address sought = {.address = address, .module = module};
    uint32_t number = INDEX_FIND(&cache->index, KEY_BYTES, &sought, cache->addresses);
    if (number == INDEX_NONE)
        return false;
    struct cached_address *known = &cache->addresses[number];
    known->used = cache->profiles;
    ret_symbol->line_count = known->line_count;
    ret_symbol->function_offset = known->function_offset;
    ret_symbol->has_debug_info = known->has_debug_info;
    *ret_is_trampoline = known->is_trampoline;
    for (size_t i = 0; i < known->line_count; i++) {
        const struct cached_line *line = &cache->lines[known->first_line + i];
        ret_symbol->lines[i] = (struct symbol_line){
            .name = strings_get(&cache->strings, line->name),
            .shown = strings_get(&cache->strings, line->shown),
            .file = line->file ? strings_get(&cache->strings, line->file) : NULL,
            .line = line->line,
            .is_inlined = line->is_inlined,
        };
    }
    return true;
}

int name_cache_add(struct name_cache *cache, uint32_t module, uint64_t address,
                   const struct symbol *symbol, bool is_trampoline)
{
    struct cached_address row = {
        .address = address,
        .module = module,
        .line_count = (uint32_t)symbol->line_count,
        .first_line = cache->line_count,
        .function_offset = symbol->function_offset,
        .has_debug_info = symbol->has_debug_info,
        .is_trampoline = is_trampoline,
        .used = cache->profiles,
    };
    uint32_t number = INDEX_FIND(&cache->index, KEY_BYTES, &row, cache->addresses);
    if (number != INDEX_NONE)
        return 0;
    if (array_reserve(&cache->lines, &cache->line_capacity, cache->line_count + symbol->line_count))
        return -ENOMEM;
    for (size_t i = 0; i < symbol->line_count; i++) {
        const struct symbol_line *line = &symbol->lines[i];
        struct cached_line *to = &cache->lines[cache->line_count + i];
        *to = (struct cached_line){.line = line->line, .is_inlined = line->is_inlined};
        if (strings_intern(&cache->strings, line->name, &to->name) ||
            strings_intern(&cache->strings, line->shown, &to->shown) ||
            strings_intern(&cache->strings, line->file ? line->file : "", &to->file))
            return -ENOMEM;
    }
    int err = INDEX_INTERN(&cache->index, KEY_BYTES, &row, &cache->addresses, &cache->address_count,
                           &cache->address_capacity, &number);
    cache->line_count += err ? 0 : symbol->line_count;
    return err;
}

/* Adds one of another cache's addresses. */
static int take_over(struct name_cache *cache, struct name_cache *from, uint32_t number)
{
    struct cached_address known = from->addresses[number];
    struct symbol symbol;
    bool is_trampoline;
    name_cache_get(from, known.module, known.address, &symbol, &is_trampoline);
    int err = name_cache_add(cache, known.module, known.address, &symbol, is_trampoline);
    if (!err)
        cache->addresses[cache->address_count - 1].used = known.used;
    return err;
}

int name_cache_age(struct name_cache *cache)
{
    struct name_cache kept;
    cache->profiles++;
    if (cache->address_count <= cache->limit)
        return 0;
    int err = name_cache_init(&kept);
    kept.profiles = cache->profiles;
    for (uint32_t i = 0; i < cache->address_count && !err; i++) {
        if (cache->profiles - cache->addresses[i].used <= AGE_MAX)
            err = take_over(&kept, cache, i);
    }
    if (err) {
        name_cache_free(&kept);
        return err;
    }
    if (kept.limit < 2 * kept.address_count)
        kept.limit = 2 * kept.address_count;
    name_cache_free(cache);
    *cache = kept;
    return 0;
}
