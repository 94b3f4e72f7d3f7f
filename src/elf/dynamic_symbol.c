#include "elf/dynamic_symbol.h"

#include <string.h>

static bool find_in(Elf *elf, Elf_Scn *scn, const GElf_Shdr *header, const char *name,
                    unsigned char type, struct module_part *ret_symbol)
{
    Elf_Data *data = elf_getdata(scn, NULL);
    size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
    for (size_t i = 0; i < count; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || GELF_ST_TYPE(symbol.st_info) != type ||
            symbol.st_shndx == SHN_UNDEF)
            continue;
        const char *found = bounded_elf_string(elf, header->sh_link, symbol.st_name);
        if (!found || strcmp(found, name) != 0)
            continue;
        *ret_symbol = (struct module_part){symbol.st_value, symbol.st_size};
        return true;
    }
    return false;
}

bool dynamic_symbol_find(struct module *module, const char *name, unsigned char type,
                         struct module_part *ret_symbol)
{
    Elf *elf = module_open_elf(module);
    uint64_t bytes_left = module->image.bytes;
    bool is_found = false;
    static const GElf_Word tables[] = {SHT_DYNSYM, SHT_SYMTAB};
    for (size_t i = 0; elf && i < 2 && !is_found; i++) {
        Elf_Scn *scn = NULL;
        GElf_Shdr header;
        while (!is_found && (scn = elf_nextscn(elf, scn))) {
            if (gelf_getshdr(scn, &header) && header.sh_type == tables[i] &&
                bounded_elf_take_bytes(&bytes_left, header.sh_size))
                is_found = find_in(elf, scn, &header, name, type, ret_symbol);
        }
    }
    elf_end(elf);
    return is_found;
}
