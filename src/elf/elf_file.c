#include "elf/elf_file.h"
#include "base/text.h"
#include "elf/compressed.h"
#include "elf/functions.h"
#include "elf/stubs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The form of .eh_frame_hdr that every linker writes, and the only one libunwind searches:
 * a version, three encodings (DW_EH_PE_*), the 32-bit pc-relative address of .eh_frame, the 32-bit
 * count of entries, and pairs of 32-bit offsets from the header, sorted (LSB 5.0, 10.6.2). */
struct eh_frame_header {
    uint8_t version;
    uint8_t eh_frame_encoding;
    uint8_t count_encoding;
    uint8_t table_encoding;
    int32_t eh_frame;
    uint32_t entry_count;
};
#define CFI_SECTION_BYTES_MAX ((uint64_t)256 << 20) /* a larger one is ignored */
#define EH_PCREL_SDATA4 0x1b
#define EH_UDATA4 0x03
#define EH_DATAREL_SDATA4 0x3b

static int add_segment(struct module *module, const GElf_Phdr *header)
{
    if (module->segment_count == SEGMENTS_MAX)
        return -ENOEXEC;
    struct segment *grown =
        reallocarray(module->segments, module->segment_count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    module->segments = grown;
    module->segments[module->segment_count++] = (struct segment){
        .offset = header->p_offset,
        .file_bytes = header->p_filesz,
        .address = header->p_vaddr,
        .memory_bytes = header->p_memsz,
        .executable = header->p_flags & PF_X,
    };
    return 0;
}

static void read_unwind_table(struct module *module, uint64_t address)
{
    struct eh_frame_header header;
    if (!module_read(module, address, &header, sizeof header))
        return;
    if (header.version != 1 || header.eh_frame_encoding != EH_PCREL_SDATA4 ||
        header.count_encoding != EH_UDATA4 || header.table_encoding != EH_DATAREL_SDATA4)
        return;
    module->unwind_table = (struct unwind_table){
        .header_address = address,
        .entries_address = address + sizeof header,
        .entry_count = header.entry_count,
    };
}

void elf_file_decompress(struct module *module)
{
    const struct image *image = &module->image;
    struct cfi_section *section = &module->debug_frame;
    if (!section->is_compressed)
        return;
    section->is_compressed = false;
    struct section compressed = {
        .fd = image->fd, .offset = section->offset, .bytes = section->bytes};
    size_t bytes = 0;
    if (section->offset <= image->bytes && section->bytes <= image->bytes - section->offset) {
        compressed.memory = image->memory ? image->memory + section->offset : NULL;
        section->memory = section_decompress(&compressed, false, CFI_SECTION_BYTES_MAX, &bytes);
    }
    section->bytes = bytes;
}

/* The names that cmd/link uses. In position-independent programs, .data.rel.ro precedes the
 * first. */
static void note_go_section(struct go_traces *go, const GElf_Shdr *header, const char *name)
{
    go->has_sections = true;
    go->is_go = go->is_go || text_begins(name, ".go.") || text_begins(name, ".note.go.");
    if (text_ends(name, ".gopclntab"))
        go->pclntab = (struct module_part){header->sh_addr, header->sh_size};
}

static void read_section(struct module *module, const GElf_Shdr *header, const char *name)
{
    note_go_section(&module->go, header, name);
    struct cfi_section section = {
        .address = header->sh_addr, .offset = header->sh_offset, .bytes = header->sh_size};
    if (header->sh_type == SHT_NOBITS || section.bytes > CFI_SECTION_BYTES_MAX)
        return;
    if (strcmp(name, ".eh_frame") == 0 && !module->unwind_table.header_address)
        module->eh_frame = section;
    /* Only the first of several: each may take long to decompress. */
    if (strcmp(name, ".debug_frame") == 0 && !module->debug_frame.offset) {
        section.is_compressed = header->sh_flags & SHF_COMPRESSED;
        module->debug_frame = section;
    }
}

static void read_sections(struct module *module, Elf *elf)
{
    Elf_Scn *scn = NULL;
    GElf_Shdr header;
    const char *name;
    while ((scn = bounded_elf_next_section(elf, scn, &header, &name)))
        read_section(module, &header, name);
}

static int read_headers(struct module *module, Elf *elf)
{
    GElf_Ehdr ehdr;
    size_t count;
    uint64_t unwind_header = 0;
    if (!gelf_getehdr(elf, &ehdr) || elf_getphdrnum(elf, &count))
        return -ENOEXEC;
    module->entry_address = ehdr.e_entry;
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (!gelf_getphdr(elf, (int)i, &header))
            return -ENOEXEC;
        if (header.p_type == PT_GNU_EH_FRAME)
            unwind_header = header.p_vaddr;
        if (header.p_type == PT_DYNAMIC)
            module->dynamic = (struct module_part){header.p_vaddr, header.p_filesz};
        if (header.p_type == PT_TLS)
            module->tls = (struct tls_segment){header.p_vaddr, header.p_memsz, header.p_align};
        int err = header.p_type == PT_LOAD ? add_segment(module, &header) : 0;
        if (err)
            return err;
    }
    if (unwind_header)
        read_unwind_table(module, unwind_header);
    read_sections(module, elf);
    module->build_id_bytes = bounded_elf_build_id(elf, module->build_id);
    return 0;
}

int elf_file_read(struct module *module)
{
    Elf *elf = module_open_elf(module);
    if (!elf)
        return -ENOEXEC;
    int err = read_headers(module, elf);
    elf_end(elf);
    return err;
}

size_t module_bytes(const struct module *module)
{
    size_t debug_frame = module->debug_frame.memory ? module->debug_frame.bytes : 0;
    size_t cfi_functions = module->eh_frame.function_count + module->debug_frame.function_count;
    return sizeof *module + image_kept_bytes(&module->image) + debug_frame +
           cfi_functions * sizeof(struct cfi_function) +
           module->segment_count * sizeof *module->segments +
           module->functions.capacity * sizeof *module->functions.items +
           module->stubs.count * sizeof *module->stubs.items;
}

static void free_functions(struct cfi_section *section)
{
    free(section->functions);
    section->functions = NULL;
    section->function_count = 0;
    section->has_functions = false;
}

void module_reset(struct module *module)
{
    image_reset(&module->image);
    free_functions(&module->eh_frame);
    free_functions(&module->debug_frame);
    module->pclntab = (struct pclntab){0};
    functions_free(&module->functions);
    stubs_free(&module->stubs);
}

void module_close_file(struct module *module)
{
    module_reset(module);
    image_close(&module->image);
    free(module->segments);
    module->segments = NULL;
    module->segment_count = 0;
    module->is_readable = false;
    module->is_orphan = true;
    module->error = -EMFILE;
}

void module_clear(struct module *module)
{
    module_reset(module);
    image_close(&module->image);
    free(module->segments);
    free(module->debug_frame.memory);
    free(module->path);
    *module = (struct module){.image.fd = -1};
}

void module_free(struct module *module)
{
    if (module)
        module_clear(module);
    free(module);
}
