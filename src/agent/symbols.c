#include "agent/symbols.h"

#include <string.h>

static const ElfW(Dyn) * dynamic_section(const struct module *module)
{
    for (unsigned i = 0; i < module->segment_count; i++) {
        if (module->segments[i].p_type == PT_DYNAMIC)
            return (const void *)(module->base + module->segments[i].p_vaddr);
    }
    return NULL;
}

/* glibc adds the base to pointers in the section, other libraries leave them as the file has them.
 */
static const void *pointer_of(const struct module *module, const ElfW(Dyn) * entry)
{
    uint64_t address = entry->d_un.d_ptr;
    return (const void *)(address < module->base ? module->base + address : address);
}

bool symbols_of(const struct module *module, struct symbols *ret_symbols)
{
    struct symbols symbols = {.base = module->base};
    const ElfW(Dyn) *entry = dynamic_section(module);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            symbols.table = pointer_of(module, entry);
        else if (entry->d_tag == DT_STRTAB)
            symbols.names = pointer_of(module, entry);
        else if (entry->d_tag == DT_GNU_HASH)
            symbols.gnu_hash = pointer_of(module, entry);
        else if (entry->d_tag == DT_HASH)
            symbols.hash = pointer_of(module, entry);
        else if (entry->d_tag == DT_JMPREL)
            symbols.calls = pointer_of(module, entry);
        else if (entry->d_tag == DT_PLTRELSZ)
            symbols.call_count = entry->d_un.d_val / sizeof *symbols.calls;
        else if (entry->d_tag == DT_RELA)
            symbols.others = pointer_of(module, entry);
        else if (entry->d_tag == DT_RELASZ)
            symbols.other_count = entry->d_un.d_val / sizeof *symbols.others;
    }
    *ret_symbols = symbols;
    return symbols.table && symbols.names;
}

static uint64_t defined_as(const struct symbols *symbols, uint32_t number, const char *name)
{
    const ElfW(Sym) *symbol = &symbols->table[number];
    unsigned binding = symbol->st_info >> 4; /* as in both classes of ELF */
    if (symbol->st_shndx == SHN_UNDEF || !symbol->st_value ||
        (binding != STB_GLOBAL && binding != STB_WEAK) ||
        strcmp(symbols->names + symbol->st_name, name) != 0)
        return 0;
    return symbols->base + symbol->st_value;
}

/* The table as GNU ld writes it: the numbers of buckets, of symbols that are not in it and of words
 * of a filter, a shift, the filter, the buckets, and for each symbol its hash, whose lowest bit
 * marks the last symbol of a bucket. */
static uint64_t find_by_gnu_hash(const struct symbols *symbols, const char *name)
{
    const uint32_t *header = symbols->gnu_hash;
    uint32_t buckets = header[0], first = header[1], hash = 5381;
    const uint32_t *bucket = &header[4 + header[2] * (sizeof(ElfW(Addr)) / sizeof *header)];
    for (const unsigned char *at = (const unsigned char *)name; *at; at++)
        hash = hash * 33 + *at;
    uint32_t number = buckets ? bucket[hash % buckets] : 0;
    if (number < first)
        return 0;
    for (const uint32_t *chain = &bucket[buckets];; number++) {
        uint32_t of = chain[number - first];
        uint64_t address = (of | 1) == (hash | 1) ? defined_as(symbols, number, name) : 0;
        if (address || (of & 1))
            return address;
    }
}

/* Numbers of buckets and symbols; every symbol is checked. */
static uint64_t find_by_hash(const struct symbols *symbols, const char *name)
{
    uint64_t address = 0;
    for (uint32_t number = 1; number < symbols->hash[1] && !address; number++)
        address = defined_as(symbols, number, name);
    return address;
}

uint64_t symbols_address(const struct symbols *symbols, const char *name)
{
    if (symbols->gnu_hash)
        return find_by_gnu_hash(symbols, name);
    return symbols->hash ? find_by_hash(symbols, name) : 0;
}
