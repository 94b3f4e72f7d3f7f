#include "elf/object.h"
#include "elf/compressed.h"

#include <errno.h>
#include <fcntl.h>
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

/* The contents of a compressed section, kept until the object is closed. */
struct decompressed {
    struct decompressed *next;
    unsigned char *contents;
};

int object_open_module(struct object *object, const struct module *module)
{
    if (module->image.fd < 0)
        return object_open_memory(object, module->image.memory, module->image.bytes);
    int fd = fcntl(module->image.fd, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? -errno : object_open_fd(object, fd);
}

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

static bool is_in_file(const struct object *object, const GElf_Shdr *header)
{
    return header->sh_offset <= object->bytes &&
           header->sh_size <= object->bytes - header->sh_offset;
}

/* Replaces the section by its contents, in memory that the object owns. */
static bool decompress(struct object *object, bool is_gnu, struct section *section)
{
    struct decompressed *kept = malloc(sizeof *kept);
    size_t bytes;
    unsigned char *contents =
        kept ? section_decompress(section, is_gnu, DECOMPRESSED_BYTES_MAX, &bytes) : NULL;
    if (!contents) {
        free(kept);
        return false;
    }
    *kept = (struct decompressed){object->decompressed, contents};
    object->decompressed = kept;
    *section = (struct section){.memory = contents, .bytes = bytes};
    return true;
}

/* A section that can't be decompressed is treated as absent. */
static bool open_section(struct object *object, Elf_Scn *scn, const GElf_Shdr *header, bool is_gnu,
                         struct section *ret_section)
{
    struct section section = {
        .fd = object->fd, .offset = header->sh_offset, .bytes = header->sh_size};
    bool is_compressed = is_gnu || header->sh_flags & SHF_COMPRESSED;
    if (!is_in_file(object, header))
        return false;
    if (object->fd < 0) {
        const Elf_Data *data = elf_rawdata(scn, NULL);
        if (!data || !data->d_buf)
            return false;
        section.memory = data->d_buf;
    }
    if (is_compressed && !decompress(object, is_gnu, &section))
        return false;
    *ret_section = section;
    return true;
}

/* The next section of that name after `scn`, or the first if that is NULL. */
static Elf_Scn *next_section(struct object *object, Elf_Scn *scn, const char *name,
                             GElf_Shdr *ret_header, bool *ret_is_gnu)
{
    const char *found;
    while ((scn = bounded_elf_next_section(object->elf, scn, ret_header, &found))) {
        if (ret_header->sh_type == SHT_NOBITS || !ret_header->sh_size)
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
            !is_in_file(object, &header))
            return false;
    }
    return true;
}
