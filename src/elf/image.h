/* The bytes of a mapped file, read from the file on demand and kept.
 *
 * They are read with pread instead of mmap: the file is not ours, and if it is truncated while
 * mapped, SIGBUS kills its reader. */
#ifndef FGPROF_ELF_IMAGE_H
#define FGPROF_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image {
    int fd; /* -1: all of it is in memory */
    size_t bytes;
    unsigned char *memory; /* if fd is -1; owned */
    unsigned char **pages; /* of IMAGE_PAGE_BYTES each, NULL until read; NULL: none was */
    size_t page_count;
    size_t pages_read;   /* of these */
    size_t copied_bytes; /* of memory that the file takes, if it is a copy that we made */
};

#define IMAGE_PAGE_BYTES 4096u

/* Takes over `fd`, a regular file. Returns 0 or a negative errno; on error fd is still the
 * caller's. */
int image_open_fd(struct image *image, int fd);

/* Takes over `memory`, which was allocated by malloc. */
void image_open_memory(struct image *image, unsigned char *memory, size_t bytes);

size_t image_kept_bytes(const struct image *image);

/* Frees the pages that were read. */
void image_reset(struct image *image);

void image_close(struct image *image);

/* Copies `bytes` bytes from `offset`. Returns false if they are not all there. */
bool image_read(struct image *image, uint64_t offset, void *buffer, size_t bytes);

/* Finds the first place from `offset` up to `end` that holds `wanted`, at a multiple of `alignment`
 * from `offset`. `bytes` is a power of two, at most 8, and divides the alignment. Keeps nothing of
 * what it reads. */
bool image_find(struct image *image, uint64_t offset, uint64_t end, const void *wanted,
                size_t bytes, size_t alignment, uint64_t *ret_offset);

#endif
