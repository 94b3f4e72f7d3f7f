#include "elf/functions.h"
#include "base/array.h"
#include "base/upper_bound.h"

#include <stdlib.h>

/* Functions written in assembly often have no type. Local labels look the same, and are left out.
 */
static bool is_function(const struct module *module, const GElf_Sym *symbol)
{
    unsigned char type = GELF_ST_TYPE(symbol->st_info);
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE ||
        !module_code_end(module, symbol->st_value))
        return false;
    return type == STT_FUNC || type == STT_GNU_IFUNC ||
           (type == STT_NOTYPE && GELF_ST_BIND(symbol->st_info) != STB_LOCAL);
}

static bool read_table(struct module *module, Elf_Scn *scn, const GElf_Shdr *header)
{
    struct functions *functions = &module->functions;
    Elf_Data *data = header->sh_size <= TABLE_BYTES_MAX ? elf_getdata(scn, NULL) : NULL;
    size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
    for (size_t i = 0; i < count; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || !is_function(module, &symbol))
            continue;
        uint64_t end = symbol.st_value + symbol.st_size;
        if (array_append(
                &functions->items, &functions->count, &functions->capacity,
                (struct function_range){symbol.st_value, end < symbol.st_value ? UINT64_MAX : end}))
            return false;
    }
    return true;
}

/* Sorts by start; at the same start, a symbol that has a size precedes one that has none. */
static int compare(const void *a, const void *b)
{
    const struct function_range *left = a, *right = b;
    return left->start != right->start ? ORDER(left->start, right->start)
                                       : ORDER(right->end, left->end);
}

static void sort(struct module *module)
{
    struct functions *functions = &module->functions;
    size_t kept = 0;
    array_sort(functions->items, functions->count, compare);
    for (size_t i = 0; i < functions->count; i++) {
        struct function_range *range = &functions->items[i];
        if (kept && functions->items[kept - 1].start == range->start)
            continue;
        functions->items[kept++] = *range;
    }
    functions->count = kept;
    for (size_t i = 0; i < kept; i++) {
        struct function_range *range = &functions->items[i];
        uint64_t next = i + 1 < kept ? range[1].start : UINT64_MAX;
        uint64_t end_of_all = module_code_end(module, range->start);
        if (range->end == range->start)
            range->end = next < end_of_all ? next : end_of_all;
    }
}

static void read_tables(struct module *module)
{
    struct functions *functions = &module->functions;
    functions->were_read = true;
    Elf *elf = module_open_elf(module);
    Elf_Scn *scn = NULL;
    bool ok = elf != NULL;
    uint64_t bytes_left = module->image.bytes;
    while (ok && (scn = elf_nextscn(elf, scn))) {
        GElf_Shdr header;
        if (gelf_getshdr(scn, &header) &&
            (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) &&
            bounded_elf_take_bytes(&bytes_left, header.sh_size))
            ok = read_table(module, scn, &header);
    }
    elf_end(elf);
    sort(module);
}

bool functions_find(struct module *module, uint64_t address, struct function_range *ret_range)
{
    const struct functions *functions = &module->functions;
    if (!functions->were_read)
        read_tables(module);
    size_t after = UPPER_BOUND(functions->items, functions->count, start, address);
    if (!after || address >= functions->items[after - 1].end)
        return false;
    *ret_range = functions->items[after - 1];
    return true;
}

void functions_free(struct functions *functions)
{
    free(functions->items);
    *functions = (struct functions){0};
}
