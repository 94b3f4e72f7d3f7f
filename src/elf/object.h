/* An ELF file and its sections, read through libelf. */
#ifndef FGPROF_ELF_OBJECT_H
#define FGPROF_ELF_OBJECT_H

#include "elf/bounded_elf.h"
#include "elf/module.h"
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

/* Takes over `fd`, even on error. Returns 0, or -ENOEXEC if it is not a 64-bit ELF file. */
int object_open_fd(struct object *object, int fd);
/* `memory` must outlive the object, unless object->memory is set to it. */
int object_open_memory(struct object *object, const unsigned char *memory, size_t bytes);
/* The module's own file, or its image in memory. Returns the same, or another negative errno if it
 * can't be opened again. */
int object_open_module(struct object *object, const struct module *module);
void object_close(struct object *object);

/* The section's contents, read again by each call and decompressed if needed. Returns false if
 * there is no section of that name. The name of a .debug_* section also finds the older .zdebug_*.
 * The section must not outlive the object. */
bool object_section(struct object *object, const char *name, struct section *ret_section);

bool object_has_section(struct object *object, const char *name);

/* Whether every section lies in the file, which is not so if the file was cut short. */
bool object_is_whole(struct object *object);

#endif
