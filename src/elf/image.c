#include "elf/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Larger than any program; a sparse file can claim to be of any size. */
#define IMAGE_MAX_BYTES ((off_t)64 << 30)

int image_open_fd(struct image *image, int fd)
{
    struct stat status;
    if (fstat(fd, &status))
        return -errno;
    if (status.st_size > IMAGE_MAX_BYTES)
        return -EFBIG;
    size_t bytes = (size_t)status.st_size;
    *image = (struct image){.fd = fd, .bytes = bytes, .page_count = bytes / IMAGE_PAGE_BYTES + 1};
    return 0;
}

void image_open_memory(struct image *image, unsigned char *memory, size_t bytes)
{
    *image = (struct image){.fd = -1, .bytes = bytes, .memory = memory};
}

void image_reset(struct image *image)
{
    for (size_t i = 0; i < image->page_count && image->pages; i++)
        free(image->pages[i]);
    free(image->pages);
    image->pages = NULL;
    image->pages_read = 0;
}

size_t image_kept_bytes(const struct image *image)
{
    if (image->memory)
        return image->bytes;
    size_t bytes = image->copied_bytes;
    if (image->pages)
        bytes += image->page_count * sizeof *image->pages + image->pages_read * IMAGE_PAGE_BYTES;
    return bytes;
}

void image_close(struct image *image)
{
    image_reset(image);
    free(image->memory);
    if (image->fd >= 0)
        close(image->fd);
    *image = (struct image){.fd = -1};
}

/* The page, read at first use; NULL if it can't be read. Bytes past the end of the file are 0. */
static const unsigned char *page_at(struct image *image, size_t number)
{
    if (!image->pages)
        image->pages = calloc(image->page_count, sizeof *image->pages);
    if (!image->pages)
        return NULL;
    if (image->pages[number])
        return image->pages[number];
    unsigned char *page = calloc(1, IMAGE_PAGE_BYTES);
    if (!page)
        return NULL;
    ssize_t got = pread(image->fd, page, IMAGE_PAGE_BYTES, (off_t)number * IMAGE_PAGE_BYTES);
    if (got <= 0) {
        free(page);
        return NULL;
    }
    /* Less than when the file was opened: it has been cut short since. */
    size_t end = number * IMAGE_PAGE_BYTES + (size_t)got;
    if (got < (ssize_t)IMAGE_PAGE_BYTES && end < image->bytes)
        image->bytes = end;
    image->pages[number] = page;
    image->pages_read++;
    return page;
}

bool image_read(struct image *image, uint64_t offset, void *buffer, size_t bytes)
{
    if (offset > image->bytes || bytes > image->bytes - offset)
        return false;
    if (image->memory) {
        memcpy(buffer, image->memory + offset, bytes);
        return true;
    }
    unsigned char *to = buffer;
    while (bytes) {
        const unsigned char *page = page_at(image, offset / IMAGE_PAGE_BYTES);
        if (!page || offset + bytes > image->bytes)
            return false;
        size_t at = offset % IMAGE_PAGE_BYTES;
        size_t part = IMAGE_PAGE_BYTES - at < bytes ? IMAGE_PAGE_BYTES - at : bytes;
        memcpy(to, page + at, part);
        to += part;
        offset += part;
        bytes -= part;
    }
    return true;
}

/* Reads up to `bytes` bytes from `offset`, not using the pages. Returns how many there are. */
static size_t read_part(const struct image *image, uint64_t offset, unsigned char *buffer,
                        size_t bytes)
{
    if (image->fd >= 0) {
        ssize_t got = pread(image->fd, buffer, bytes, (off_t)offset);
        return got > 0 ? (size_t)got : 0;
    }
    size_t left = image->bytes - offset;
    memcpy(buffer, image->memory + offset, bytes < left ? bytes : left);
    return bytes < left ? bytes : left;
}

bool image_find(struct image *image, uint64_t offset, uint64_t end, const void *wanted,
                size_t bytes, size_t alignment, uint64_t *ret_offset)
{
    unsigned char part[16 * IMAGE_PAGE_BYTES];
    if (end > image->bytes)
        end = image->bytes;
    while (offset < end) {
        size_t room = end - offset < sizeof part ? (size_t)(end - offset) : sizeof part;
        size_t got = read_part(image, offset, part, room);
        for (size_t at = 0; at + bytes <= got; at += alignment) {
            if (memcmp(part + at, wanted, bytes) == 0) {
                *ret_offset = offset + at;
                return true;
            }
        }
        if (got < sizeof part)
            break;
        offset += got;
    }
    return false;
}
