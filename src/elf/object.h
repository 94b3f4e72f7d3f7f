/* An ELF file and its sections, by libelf. */
#ifndef FGPROF_ELF_OBJECT_H
#define FGPROF_ELF_OBJECT_H

#include "elf/bounded_elf.h"
#include "elf/section.h"

struct object {
    Elf *elf;
    int fd;                /* owned; -1: it is in memory */
    unsigned char *memory; /* owned; NULL: it is in a file, or the memory is not ours */
    uint64_t bytes;        /* of the file */
    unsigned char build_id[BUILD_ID_BYTES_MAX];
    size_t build_id_bytes; /* 0: it has none */
    struct decompressed *decompressed;
};

/* Takes over `fd`, in any case. Returns 0 or -ENOEXEC where it is not a 64-bit ELF file. */
int object_open_fd(struct object *object, int fd);
/* `memory` must outlive it, unless object->memory is set to it. */
int object_open_memory(struct object *object, const unsigned char *memory, size_t bytes);
void object_close(struct object *object);

/* The section's contents, decompressed where need be. False where there is none of that name. Of
 * .debug_* sections, the older .zdebug_* is meant too. It must not outlive the object.
 * To be asked once for each section. */
bool object_section(struct object *object, const char *name, struct section *ret_section);

bool object_has_section(struct object *object, const char *name);

/* Whether every section lies in the file, as it does not where the file was cut short. */
bool object_is_whole(struct object *object);

#endif
