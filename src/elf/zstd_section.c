#include "elf/zstd_section.h"

#include <stdlib.h>

#ifdef FGPROF_HAVE_ZSTD

#include <zstd.h>

#define COMPRESSED_BY_ZSTD 2 /* ELFCOMPRESS_ZSTD, which elf.h lacks before glibc 2.37 */
/* The most compact block has four bytes and stands for at most 128 KiB (RFC 8878, 3.1.1.2): no
 * memory is taken for a size that can't be true. */
#define RATIO_MAX (((size_t)128 << 10) / 4)

unsigned char *zstd_section_decompress(Elf_Scn *scn, const GElf_Chdr *header)
{
    static const size_t head_bytes = sizeof(Elf64_Chdr);
    const Elf_Data *data = header->ch_type == COMPRESSED_BY_ZSTD ? elf_rawdata(scn, NULL) : NULL;
    if (!data || !data->d_buf || data->d_size < head_bytes ||
        header->ch_size / RATIO_MAX > data->d_size)
        return NULL;
    unsigned char *contents = malloc(header->ch_size + 1);
    size_t bytes = contents ? ZSTD_decompress(contents, header->ch_size,
                                              (const char *)data->d_buf + head_bytes,
                                              data->d_size - head_bytes)
                            : 0;
    if (contents && bytes == header->ch_size) /* an error is never that number */
        return contents;
    free(contents);
    return NULL;
}

#else

unsigned char *zstd_section_decompress(Elf_Scn *scn, const GElf_Chdr *header)
{
    (void)scn;
    (void)header;
    return NULL;
}

#endif
