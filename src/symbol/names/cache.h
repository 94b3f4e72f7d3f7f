/* The names that were found for addresses, kept while a recording is symbolized again and again.
 *
 * Two tables. Addresses: the module's serial, its own address, and which lines belong to it. Lines:
 * as struct symbol_line, with strings by number. */
#ifndef FGPROF_SYMBOL_NAMES_CACHE_H
#define FGPROF_SYMBOL_NAMES_CACHE_H

#include "symbol/symbol.h"
#include "base/index.h"
#include "base/strings.h"

struct cached_line {
    uint32_t name, shown, file; /* in name_cache.strings; file: "" if not known */
    uint32_t line;
    bool is_inlined;
};

struct cached_address {
    uint64_t address; /* these two identify it */
    uint32_t module;
    uint32_t line_count; /* 0: looked up, but nothing is known */
    size_t first_line;
    uint64_t function_offset;
    bool has_debug_info, is_trampoline;
    uint32_t used; /* when it was last asked for or added, in profiles */
};

struct name_cache {
    struct strings strings;
    struct cached_address *addresses;
    size_t address_count, address_capacity;
    struct cached_line *lines;
    size_t line_count, line_capacity;
    struct index index; /* of addresses */
    uint32_t profiles;  /* how many were named */
    size_t limit;       /* the number of addresses above which old ones are dropped */
};

/* Returns 0 or -ENOMEM. */
int name_cache_init(struct name_cache *cache);
void name_cache_free(struct name_cache *cache);
size_t name_cache_bytes(const struct name_cache *cache);

/* Fills in what was added for the address; its strings are valid until name_cache_age. Returns
 * false if nothing was added. */
bool name_cache_get(struct name_cache *cache, uint32_t module, uint64_t address,
                    struct symbol *ret_symbol, bool *ret_is_trampoline);

/* Adds an address unless it is there. Returns 0 or -ENOMEM. */
int name_cache_add(struct name_cache *cache, uint32_t module, uint64_t address,
                   const struct symbol *symbol, bool is_trampoline);

/* Call this after naming a profile. If the cache has become large, drops the addresses that no
 * profile has used for a long time. Returns 0, or -ENOMEM, and then all stay. */
int name_cache_age(struct name_cache *cache);

#endif
