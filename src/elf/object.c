#include "elf/object.h"
#include "elf/zstd_section.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DECOMPRESSED_BYTES_MAX ((uint64_t)1 << 30) /* also the limit of the compressed size */

static int check(struct object *object)
{
    if (!object->elf) {
        object_close(object);
        return -ENOEXEC;
    }
    object->build_id_bytes = bounded_elf_build_id(object->elf, object->build_id);
    return 0;
}

int object_open_fd(struct object *object, int fd)
{
    struct stat status;
    *object = (struct object){.fd = fd};
    if (fstat(fd, &status) == 0) {
        object->bytes = (uint64_t)status.st_size;
        object->elf = bounded_elf_open(fd, NULL, 0);
    }
    return check(object);
}

int object_open_memory(struct object *object, const unsigned char *memory, size_t bytes)
{
    *object = (struct object){.fd = -1, .bytes = bytes};
    object->elf = bounded_elf_open(-1, memory, bytes);
    return check(object);
}

/* The contents of a section that libelf can't decompress, kept until the object is closed. */
struct decompressed {
    struct decompressed *next;
    unsigned char *contents;
};

void object_close(struct object *object)
{
    elf_end(object->elf);
    if (object->fd >= 0)
        close(object->fd);
    free(object->memory);
    for (struct decompressed *kept; (kept = object->decompressed);) {
        object->decompressed = kept->next;
        free(kept->contents);
        free(kept);
    }
    *object = (struct object){.fd = -1};
}

/* "ZLIB" and the size, big-endian (GNU binutils' .zdebug_* sections). */
static bool is_sane_gnu(Elf_Scn *scn)
{
    static const size_t head_bytes = 12;
    const Elf_Data *data = elf_rawdata(scn, NULL);
    uint64_t size = 0;
    if (!data || !data->d_buf || data->d_size < head_bytes)
        return false;
    for (size_t i = 4; i < head_bytes; i++)
        size = size << 8 | ((const unsigned char *)data->d_buf)[i];
    return size <= DECOMPRESSED_BYTES_MAX;
}

/* Decompresses into memory that the object owns. */
static bool decompress_zstd(struct object *object, Elf_Scn *scn, const GElf_Chdr *header,
                            struct section *section)
{
    unsigned char *contents = zstd_section_decompress(scn, header);
    struct decompressed *kept = contents ? malloc(sizeof *kept) : NULL;
    if (!kept) {
        free(contents);
        return false;
    }
    *kept = (struct decompressed){object->decompressed, contents};
    object->decompressed = kept;
    *section = (struct section){.memory = contents, .bytes = header->ch_size};
    return true;
}

/* Decompresses into memory that libelf owns, except for zstd. A section that can't be decompressed
 * is treated as absent. */
static bool decompress(struct object *object, Elf_Scn *scn, bool is_gnu, struct section *section)
{
    GElf_Chdr header;
    if (is_gnu ? !is_sane_gnu(scn)
               : !gelf_getchdr(scn, &header) || header.ch_size > DECOMPRESSED_BYTES_MAX)
        return false;
    if (!is_gnu && decompress_zstd(object, scn, &header, section))
        return true;
    if ((is_gnu ? elf_compress_gnu(scn, 0, 0) : elf_compress(scn, 0, 0)) < 0)
        return false;
    const Elf_Data *data = elf_rawdata(scn, NULL);
    if (!data || !data->d_buf)
        return false;
    *section = (struct section){.memory = data->d_buf, .bytes = data->d_size};
    return true;
}

static bool open_section(struct object *object, Elf_Scn *scn, const GElf_Shdr *header, bool is_gnu,
                         struct section *section)
{
    if (is_gnu || header->sh_flags & SHF_COMPRESSED)
        return header->sh_size <= DECOMPRESSED_BYTES_MAX &&
               decompress(object, scn, is_gnu, section);
    if (header->sh_offset > object->bytes || header->sh_size > object->bytes - header->sh_offset)
        return false;
    *section =
        (struct section){.fd = object->fd, .offset = header->sh_offset, .bytes = header->sh_size};
    if (object->fd < 0) {
        const Elf_Data *data = elf_rawdata(scn, NULL);
        section->memory = data ? data->d_buf : NULL;
    }
    return object->fd >= 0 || section->memory;
}

/* The next section of that name after `scn`, or the first if that is NULL. */
static Elf_Scn *next_section(struct object *object, Elf_Scn *scn, const char *name,
                             GElf_Shdr *ret_header, bool *ret_is_gnu)
{
    while ((scn = elf_nextscn(object->elf, scn))) {
        const char *found = gelf_getshdr(scn, ret_header)
                                ? bounded_elf_section_name(object->elf, ret_header)
                                : NULL;
        if (!found || ret_header->sh_type == SHT_NOBITS || !ret_header->sh_size)
            continue;
        *ret_is_gnu = strncmp(found, ".zdebug_", 8) == 0 && strncmp(name, ".debug_", 7) == 0 &&
                      strcmp(found + 2, name + 1) == 0;
        if (*ret_is_gnu || strcmp(found, name) == 0)
            return scn;
    }
    return NULL;
}

bool object_has_section(struct object *object, const char *name)
{
    GElf_Shdr header;
    bool is_gnu;
    return next_section(object, NULL, name, &header, &is_gnu);
}

bool object_section(struct object *object, const char *name, struct section *ret_section)
{
    GElf_Shdr header;
    bool is_gnu;
    Elf_Scn *scn = NULL;
    while ((scn = next_section(object, scn, name, &header, &is_gnu))) {
        if (open_section(object, scn, &header, is_gnu, ret_section))
            return true;
    }
    return false;
}

bool object_is_whole(struct object *object)
{
    size_t count;
    Elf_Scn *scn = NULL;
    GElf_Ehdr ehdr;
    if (!gelf_getehdr(object->elf, &ehdr) || elf_getshdrnum(object->elf, &count))
        return false;
    if (ehdr.e_shoff && !count)
        return false;
    while ((scn = elf_nextscn(object->elf, scn))) {
        GElf_Shdr header;
        if (!gelf_getshdr(scn, &header))
            return false;
        if (header.sh_type != SHT_NOBITS && header.sh_type != SHT_NULL &&
            (header.sh_offset > object->bytes || header.sh_size > object->bytes - header.sh_offset))
            return false;
    }
    return true;
}
