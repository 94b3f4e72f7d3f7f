/* Finds the runtime's record of the file that it was linked into.
 *
 * The record begins with pointers into the function table: to its header, its names, and so on. In
 * a position-independent program the loader fills them in: the values are in the relocations, and
 * the file may have zeros instead (ELF gABI, "Relocation", Elf64_Rela). */
#include "elf/go/pclntab.h"

#include <elf.h>
#include <string.h>

#ifdef __aarch64__
#define RELATIVE R_AARCH64_RELATIVE
#else
#define RELATIVE R_X86_64_RELATIVE
#endif

/* Indexes of the record's words, up to the last that is read (struct moduledata of
 * runtime/symtab.go); a slice takes three. Go 1.20 added two words before the last one, and Go 1.27
 * three, the first of them a length between the bounds of the types. */
enum { HEADER = 0, NAMES = 1, TABLES = 10, TEXT = 22, TEXT_END = 23, INLINE_DATA_1_18 = 38 };
enum { TYPES_1_20 = 37, TYPES_END_1_20 = 38, INLINE_DATA_1_20 = 40, INLINE_DATA_1_27 = 43, WORDS };

#define RELOCATIONS_MAX ((uint64_t)1 << 22)
#define POINTERS_MAX 16 /* how many pointers to the table are tried; there are two or three */

/* The loader's relocations with addends. */
static struct module_part find_relocations(struct module *module)
{
    struct module_part found = {0};
    Elf64_Dyn entry;
    for (uint64_t at = 0; at + sizeof entry <= module->dynamic.bytes; at += sizeof entry) {
        if (!module_read(module, module->dynamic.address + at, &entry, sizeof entry) ||
            entry.d_tag == DT_NULL)
            break;
        if (entry.d_tag == DT_RELA)
            found.address = entry.d_un.d_ptr;
        if (entry.d_tag == DT_RELASZ)
            found.bytes = entry.d_un.d_val;
    }
    if (found.bytes / sizeof(Elf64_Rela) > RELOCATIONS_MAX)
        found.bytes = 0;
    return found;
}

/* Finds where the loader writes a pointer to `target`, starting at the entry at *position, which is
 * moved past the one found. */
static bool find_pointer(struct module *module, const struct module_part *relocations,
                         uint64_t target, uint64_t *position, uint64_t *ret_address)
{
    Elf64_Rela entry;
    for (; *position + sizeof entry <= relocations->bytes; *position += sizeof entry) {
        if (!module_read(module, relocations->address + *position, &entry, sizeof entry))
            return false;
        if (ELF64_R_TYPE(entry.r_info) == RELATIVE && (uint64_t)entry.r_addend == target) {
            *position += sizeof entry;
            *ret_address = entry.r_offset;
            return true;
        }
    }
    return false;
}

/* Sets the words at `address` to what the loader would put there. */
static void relocate(struct module *module, const struct module_part *relocations, uint64_t address,
                     uint64_t words[WORDS])
{
    Elf64_Rela entry;
    for (uint64_t at = 0; at + sizeof entry <= relocations->bytes; at += sizeof entry) {
        if (!module_read(module, relocations->address + at, &entry, sizeof entry))
            return;
        uint64_t number = (entry.r_offset - address) / sizeof *words;
        if (entry.r_offset >= address && number < WORDS && ELF64_R_TYPE(entry.r_info) == RELATIVE)
            words[number] = (uint64_t)entry.r_addend;
    }
}

static bool take(const struct pclntab *table, const uint64_t words[WORDS], struct go_module *ret)
{
    if (words[HEADER] != table->address || words[NAMES] != table->names ||
        words[TABLES] != table->tables || words[TEXT] >= words[TEXT_END])
        return false;
    ret->text = words[TEXT];
    bool is_1_27 = words[TYPES_END_1_20] < words[TYPES_1_20];
    ret->inline_data = words[table->form == PCLNTAB_1_18 ? INLINE_DATA_1_18
                             : is_1_27                   ? INLINE_DATA_1_27
                                                         : INLINE_DATA_1_20];
    return true;
}

static bool find_by_relocations(const struct pclntab *table, struct go_module *ret)
{
    struct module *module = table->module;
    const struct module_part relocations = find_relocations(module);
    uint64_t position = 0, address, words[WORDS];
    for (unsigned i = 0; i < POINTERS_MAX &&
                         find_pointer(module, &relocations, table->address, &position, &address);
         i++) {
        if (!module_read(module, address, words, sizeof words))
            continue;
        relocate(module, &relocations, address, words);
        if (take(table, words, ret))
            return true;
    }
    return false;
}

static bool find_in_segment(const struct pclntab *table, const struct segment *segment,
                            struct go_module *ret)
{
    struct image *image = &table->module->image;
    uint64_t words[WORDS], offset = (segment->offset + 7) & ~(uint64_t)7;
    uint64_t end = segment->offset + segment->file_bytes;
    while (image_find(image, offset, end, &table->address, sizeof table->address, sizeof *words,
                      &offset)) {
        if (image_read(image, offset, words, sizeof words) && take(table, words, ret))
            return true;
        offset += sizeof *words;
    }
    return false;
}

bool go_module_find(const struct pclntab *table, struct go_module *ret)
{
    const struct module *module = table->module;
    if (find_by_relocations(table, ret))
        return true;
    for (size_t i = 0; i < module->segment_count; i++) {
        if (!module->segments[i].executable && find_in_segment(table, &module->segments[i], ret))
            return true;
    }
    return false;
}
