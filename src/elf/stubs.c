#include "elf/stubs.h"
#include "base/array.h"
#include "base/upper_bound.h"

#include <stdlib.h>
#include <string.h>

#define NAME_BYTES_MAX 4096u               /* many stubs may each have the same long name */
#define STUB_SECTION_BYTES_MAX (16u << 20) /* a larger one is ignored */

/* What a slot is set to when the module is loaded. */
struct slot {
    uint64_t address;
    size_t symbol; /* in the dynamic symbol table; 0: chosen by the resolver */
    uint64_t resolver;
};

struct reading {
    struct module *module;
    Elf *elf;
    struct slot *slots; /* sorted by address */
    size_t slot_count, slot_capacity;
    Elf_Scn *symbols;    /* the dynamic symbol table; NULL: there is none */
    uint64_t bytes_left; /* see bounded_elf_take_bytes */
};

static bool add_slots(struct reading *reading, Elf_Scn *scn, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(scn, NULL);
    size_t count = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
    for (size_t i = 0; i < count; i++) {
        GElf_Rela entry;
        if (!gelf_getrela(data, (int)i, &entry))
            break;
        uint32_t type = (uint32_t)GELF_R_TYPE(entry.r_info);
        bool is_resolved = stub_is_relocated_to_resolved(type);
        if (!is_resolved && !stub_is_relocated_to_symbol(type))
            continue;
        if (array_append(&reading->slots, &reading->slot_count, &reading->slot_capacity,
                         (struct slot){entry.r_offset,
                                       is_resolved ? 0 : (size_t)GELF_R_SYM(entry.r_info),
                                       is_resolved ? (uint64_t)entry.r_addend : 0}))
            return false;
    }
    return true;
}

static int compare_slots(const void *a, const void *b)
{
    const struct slot *left = a, *right = b;
    return ORDER(left->address, right->address);
}

/* The name of a dynamic symbol, without its version; NULL if it has none. The caller frees it. */
static char *name_of(const struct reading *reading, size_t symbol)
{
    GElf_Shdr header;
    GElf_Sym entry;
    Elf_Data *data = reading->symbols ? elf_getdata(reading->symbols, NULL) : NULL;
    if (!symbol || !data || !gelf_getshdr(reading->symbols, &header) ||
        !gelf_getsym(data, (int)symbol, &entry))
        return NULL;
    const char *name = bounded_elf_string(reading->elf, header.sh_link, entry.st_name);
    size_t bytes = name ? strnlen(name, NAME_BYTES_MAX) : 0;
    return bytes ? strndup(name, bytes) : NULL;
}

static bool add_stub(struct reading *reading, const uint8_t *code, uint64_t address, size_t bytes)
{
    struct stubs *stubs = &reading->module->stubs;
    uint64_t wanted;
    if (!stub_slot(code, bytes, address, &wanted))
        return true;
    size_t after = UPPER_BOUND(reading->slots, reading->slot_count, address, wanted);
    const struct slot *slot = after ? &reading->slots[after - 1] : NULL;
    if (!slot || slot->address != wanted)
        return true;
    struct stub stub = {address, address + bytes, name_of(reading, slot->symbol), slot->resolver};
    if (!stub.name && !stub.resolver)
        return true;
    bool is_added = array_append(&stubs->items, &stubs->count, &stubs->capacity, stub) == 0;
    if (!is_added)
        free(stub.name);
    return is_added;
}

/* All stubs of a section have the same size, but not always the one in its header: in .plt.got it
 * may be 8 or 16, and 24 if they begin with bti or end with autia. Addresses in between are tried
 * too, and turn out not to be stubs. */
static bool add_stubs(struct reading *reading, const GElf_Shdr *header)
{
    size_t bytes = header->sh_entsize == 8 ? 8 : STUB_BYTES;
    for (uint64_t at = 0; at + bytes <= header->sh_size; at += 8) {
        uint8_t code[STUB_BYTES];
        if (!module_read(reading->module, header->sh_addr + at, code, bytes) ||
            !add_stub(reading, code, header->sh_addr + at, bytes))
            return false;
    }
    return true;
}

static bool read_relocations(struct reading *reading)
{
    GElf_Shdr header;
    Elf_Scn *scn = NULL;
    bool ok = true;
    while (ok && (scn = elf_nextscn(reading->elf, scn))) {
        if (!gelf_getshdr(scn, &header))
            continue;
        if (header.sh_type == SHT_DYNSYM && header.sh_size <= TABLE_BYTES_MAX)
            reading->symbols = scn;
        /* A file that can be mapped to run has none of an object file's other relocations. */
        if (header.sh_type == SHT_RELA && header.sh_flags & SHF_ALLOC &&
            bounded_elf_take_bytes(&reading->bytes_left, header.sh_size))
            ok = add_slots(reading, scn, &header);
    }
    array_sort(reading->slots, reading->slot_count, compare_slots);
    return ok;
}

static void read_stubs(struct reading *reading)
{
    Elf_Scn *scn = NULL;
    GElf_Shdr header;
    const char *name;
    bool ok = read_relocations(reading);
    while (ok && (scn = bounded_elf_next_section(reading->elf, scn, &header, &name))) {
        if (strstr(name, "plt") && header.sh_type == SHT_PROGBITS &&
            header.sh_flags & SHF_EXECINSTR && header.sh_size <= STUB_SECTION_BYTES_MAX &&
            bounded_elf_take_bytes(&reading->bytes_left, header.sh_size))
            ok = add_stubs(reading, &header);
    }
}

static int compare_stubs(const void *a, const void *b)
{
    const struct stub *left = a, *right = b;
    return ORDER(left->start, right->start);
}

const struct stub *stubs_find(struct module *module, uint64_t address)
{
    struct stubs *stubs = &module->stubs;
    if (!stubs->were_read) {
        struct reading reading = {
            .module = module,
            .elf = module_open_elf(module),
            .bytes_left = module->image.bytes,
        };
        stubs->were_read = true;
        if (reading.elf)
            read_stubs(&reading);
        array_sort(stubs->items, stubs->count, compare_stubs);
        free(reading.slots);
        elf_end(reading.elf);
    }
    size_t after = UPPER_BOUND(stubs->items, stubs->count, start, address);
    return after && address < stubs->items[after - 1].end ? &stubs->items[after - 1] : NULL;
}

void stubs_free(struct stubs *stubs)
{
    for (size_t i = 0; i < stubs->count; i++)
        free(stubs->items[i].name);
    free(stubs->items);
    *stubs = (struct stubs){0};
}
