/* libelf could decompress sections too, but reads and allocates whatever a section claims, keeps
 * it, and does not know zstd before version 0.189. */
#include "elf/compressed.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#ifdef FGPROF_HAVE_ZSTD
#include <zstd.h>
#endif

#define COMPRESSED_BY_ZSTD 2 /* ELFCOMPRESS_ZSTD, which elf.h lacks before glibc 2.37 */

/* What a section says of itself before its compressed bytes. */
struct head {
    uint32_t method; /* ELFCOMPRESS_* */
    uint64_t bytes;  /* decompressed */
    size_t head_bytes;
};

/* "ZLIB" and the size, big-endian (GNU binutils' .zdebug_* sections). */
static bool read_gnu_head(const struct slice *slice, struct head *ret_head)
{
    static const size_t head_bytes = 12;
    if (slice->count < head_bytes || memcmp(slice->bytes, "ZLIB", 4) != 0)
        return false;
    *ret_head = (struct head){.method = ELFCOMPRESS_ZLIB, .head_bytes = head_bytes};
    for (size_t i = 4; i < head_bytes; i++)
        ret_head->bytes = ret_head->bytes << 8 | slice->bytes[i];
    return true;
}

static bool read_head(const struct slice *slice, struct head *ret_head)
{
    Elf64_Chdr header;
    if (slice->count < sizeof header)
        return false;
    memcpy(&header, slice->bytes, sizeof header);
    *ret_head = (struct head){header.ch_type, header.ch_size, sizeof header};
    return true;
}

/* Both return whether `from`, which may have several streams or frames, is complete and has exactly
 * `to_bytes` bytes. */
static bool decompress_zlib(const unsigned char *from, size_t from_bytes, unsigned char *to,
                            size_t to_bytes)
{
    z_stream stream = {.next_in = (Bytef *)from,
                       .avail_in = (uInt)from_bytes,
                       .next_out = to,
                       .avail_out = (uInt)to_bytes};
    int result = inflateInit(&stream);
    if (result != Z_OK)
        return false;
    while (result == Z_OK && stream.avail_in) {
        result = inflate(&stream, Z_FINISH);
        result = result == Z_STREAM_END ? inflateReset(&stream) : Z_DATA_ERROR;
    }
    inflateEnd(&stream);
    return result == Z_OK && !stream.avail_out;
}

#ifdef FGPROF_HAVE_ZSTD
static bool decompress_zstd(const unsigned char *from, size_t from_bytes, unsigned char *to,
                            size_t to_bytes)
{
    return ZSTD_decompress(to, to_bytes, from, from_bytes) == to_bytes; /* an error is never that */
}
#endif

static const struct {
    uint32_t method;
    /* The most that compressed data can expand: no memory is allocated for a size that can't be
     * true. */
    size_t ratio_max;
    bool (*decompress)(const unsigned char *from, size_t from_bytes, unsigned char *to,
                       size_t to_bytes);
} methods[] = {
    {ELFCOMPRESS_ZLIB, 1032, decompress_zlib}, /* zlib's zlib_tech.html, "Maximum Compression
                                                  Factor" */
#ifdef FGPROF_HAVE_ZSTD
    /* The most compact block has four bytes and stands for at most 128 KiB (RFC 8878, 3.1.1.2). */
    {COMPRESSED_BY_ZSTD, ((size_t)128 << 10) / 4, decompress_zstd},
#endif
};

static unsigned char *decompress(const struct slice *slice, const struct head *head)
{
    const unsigned char *from = slice->bytes + head->head_bytes;
    size_t from_bytes = slice->count - head->head_bytes, to_bytes = (size_t)head->bytes;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (methods[i].method != head->method || to_bytes / methods[i].ratio_max > from_bytes)
            continue;
        unsigned char *to = malloc(to_bytes + 1);
        if (to && methods[i].decompress(from, from_bytes, to, to_bytes))
            return to;
        free(to);
    }
    return NULL;
}

unsigned char *section_decompress(const struct section *section, bool is_gnu, uint64_t bytes_max,
                                  size_t *ret_bytes)
{
    struct slice slice = {0};
    struct head head;
    unsigned char *contents = NULL;
    if (section->bytes <= bytes_max && slice_read(&slice, section, 0, section->bytes) == 0 &&
        (is_gnu ? read_gnu_head(&slice, &head) : read_head(&slice, &head)) &&
        head.bytes <= bytes_max)
        contents = decompress(&slice, &head);
    if (contents)
        *ret_bytes = (size_t)head.bytes;
    slice_free(&slice);
    return contents;
}
