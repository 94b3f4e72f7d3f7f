/* The bytes of one section of an ELF file, read from the file on demand.
 *
 * They are read with pread instead of mmap: see elf/image.h. Memory is also freed again, so a file
 * of gigabytes takes only as much as the part in use. */
#ifndef FGPROF_ELF_SECTION_H
#define FGPROF_ELF_SECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct section {
    const unsigned char *memory; /* all of it, not owned; NULL: it is in the file */
    int fd;                      /* not owned */
    uint64_t offset;             /* in the file */
    uint64_t bytes;              /* 0: there is none */
    unsigned char *window;       /* the part of the file that was read last */
    size_t window_capacity, window_bytes;
    uint64_t window_at;
};

/* A part of a section, of any size, in memory. */
struct slice {
    const unsigned char *bytes;
    size_t count;
    unsigned char *owned;
    size_t capacity;
};

void section_close(struct section *section);

/* Returns how many bytes, at most `wanted`, can be read at `at`. They stay valid until the next
 * call for this section. 0 at the end, or if they can't be read. Meant for a few hundred bytes. */
size_t section_peek(struct section *section, uint64_t at, size_t wanted,
                    const unsigned char **ret_bytes);

/* Reads a little-endian number of `size` bytes, 1 to 8. Returns false if it is not there. */
bool section_number(struct section *section, uint64_t at, unsigned size, uint64_t *ret_number);

/* The string at `at`, valid until the next call for this section; NULL if there is none. */
const char *section_string(struct section *section, uint64_t at);

/* Reads a part, replacing what `slice` held. Returns 0, -ENOMEM, or -ENOEXEC if the part is
 * incomplete or implausibly large. */
int slice_read(struct slice *slice, const struct section *section, uint64_t at, uint64_t bytes);
void slice_free(struct slice *slice);

#endif
