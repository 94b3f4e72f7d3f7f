#include "elf/bounded_elf.h"

#include <string.h>
#include <unistd.h>

#define SECTIONS_MAX 65536u /* libelf keeps a record in memory for each */
#define NAMES_BYTES_MAX ((uint64_t)16 << 20)
/* The limit for all notes together. In a file without sections, libelf scans all earlier notes each
 * time it reads another, so many small ones take long: each counts as at least a page. */
#define NOTES_BYTES_MAX ((uint64_t)1 << 20)
#define NOTE_BYTES_MIN 4096u

static bool read_at(int fd, const unsigned char *memory, size_t bytes, uint64_t offset,
                    void *buffer, size_t wanted)
{
    if (fd >= 0)
        return pread(fd, buffer, wanted, (off_t)offset) == (ssize_t)wanted;
    if (offset > bytes || wanted > bytes - offset)
        return false;
    memcpy(buffer, memory + offset, wanted);
    return true;
}

/* Counts that do not fit into the header are in the first section's header (elf(5)). No linker
 * makes that many segments. */
static bool has_sane_header(int fd, const unsigned char *memory, size_t bytes)
{
    Elf64_Ehdr header;
    Elf64_Shdr first;
    if (!read_at(fd, memory, bytes, 0, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_phnum == PN_XNUM)
        return false;
    return header.e_shnum || !header.e_shoff ||
           !read_at(fd, memory, bytes, header.e_shoff, &first, sizeof first) ||
           first.sh_size <= SECTIONS_MAX;
}

Elf *bounded_elf_open(int fd, const unsigned char *memory, size_t bytes)
{
    elf_version(EV_CURRENT);
    if (!has_sane_header(fd, memory, bytes))
        return NULL;
    /* ELF_C_READ, not ELF_C_READ_MMAP: the file may shrink while we look (see image.h). */
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : elf_memory((char *)memory, bytes);
    if (elf_kind(elf) == ELF_K_ELF)
        return elf;
    elf_end(elf);
    return NULL;
}

/* Used instead of libelf, which would read the whole section, and decompress it to as much as a
 * thousand times its size. */
static const char *string_at(Elf *elf, size_t strings, size_t offset, uint64_t bytes_max)
{
    GElf_Shdr header;
    if (!gelf_getshdr(elf_getscn(elf, strings), &header) || header.sh_size > bytes_max ||
        header.sh_flags & SHF_COMPRESSED)
        return NULL;
    return elf_strptr(elf, strings, offset);
}

Elf_Scn *bounded_elf_next_section(Elf *elf, Elf_Scn *scn, GElf_Shdr *ret_header,
                                  const char **ret_name)
{
    size_t names;
    if (elf_getshdrstrndx(elf, &names))
        return NULL;
    while ((scn = elf_nextscn(elf, scn))) {
        *ret_name = gelf_getshdr(scn, ret_header)
                        ? string_at(elf, names, ret_header->sh_name, NAMES_BYTES_MAX)
                        : NULL;
        if (*ret_name)
            break;
    }
    return scn;
}

const char *bounded_elf_string(Elf *elf, size_t strings, size_t offset)
{
    return string_at(elf, strings, offset, TABLE_BYTES_MAX);
}

static bool take_note(uint64_t *left, uint64_t bytes)
{
    return bounded_elf_take_bytes(left, bytes < NOTE_BYTES_MIN ? NOTE_BYTES_MIN : bytes);
}

static size_t find_build_id(Elf_Data *notes, unsigned char id[BUILD_ID_BYTES_MAX])
{
    GElf_Nhdr note;
    size_t at = 0, name, content;
    while ((at = gelf_getnote(notes, at, &note, &name, &content))) {
        const unsigned char *bytes = notes->d_buf;
        if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof ELF_NOTE_GNU ||
            memcmp(bytes + name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) != 0 ||
            note.n_descsz > BUILD_ID_BYTES_MAX)
            continue;
        memcpy(id, bytes + content, note.n_descsz);
        return note.n_descsz;
    }
    return 0;
}

static size_t find_in_segments(Elf *elf, unsigned char id[BUILD_ID_BYTES_MAX])
{
    uint64_t left = NOTES_BYTES_MAX;
    size_t count, found = 0;
    if (elf_getphdrnum(elf, &count))
        return 0;
    for (size_t i = 0; i < count && !found; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_NOTE &&
            take_note(&left, segment.p_filesz))
            found =
                find_build_id(elf_getdata_rawchunk(elf, (int64_t)segment.p_offset, segment.p_filesz,
                                                   segment.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR),
                              id);
    }
    return found;
}

static size_t find_in_sections(Elf *elf, unsigned char id[BUILD_ID_BYTES_MAX])
{
    uint64_t left = NOTES_BYTES_MAX;
    size_t found = 0;
    Elf_Scn *scn = NULL;
    while (!found && (scn = elf_nextscn(elf, scn))) {
        GElf_Shdr section;
        if (gelf_getshdr(scn, &section) && section.sh_type == SHT_NOTE &&
            take_note(&left, section.sh_size))
            found = find_build_id(elf_getdata(scn, NULL), id);
    }
    return found;
}

size_t bounded_elf_build_id(Elf *elf, unsigned char id[BUILD_ID_BYTES_MAX])
{
    return elf_nextscn(elf, NULL) ? find_in_sections(elf, id) : find_in_segments(elf, id);
}
