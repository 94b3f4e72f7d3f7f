/* Variant II: blocks lie before the thread pointer, that of the executable next to it. */
#include "label/tls_offset.h"

/* The block ends at the thread pointer, or slightly before it, so that its start is as far from a
 * multiple of its alignment as in the file (_dl_determine_tlsoffset in glibc's elf/dl-tls.c). */
int64_t tls_offset_of_main(const struct tls_segment *segment)
{
    uint64_t alignment = segment->alignment ? segment->alignment : 1;
    uint64_t end = segment->bytes + segment->address;
    uint64_t pad = (alignment - end % alignment) % alignment;
    return -(int64_t)(segment->bytes + pad);
}

/* 0 and -1, in sysdeps/generic/ldsodefs.h. */
bool tls_offset_of_library(uint64_t l_tls_offset, int64_t *ret_offset)
{
    if (l_tls_offset == 0 || l_tls_offset == UINT64_MAX)
        return false;
    *ret_offset = -(int64_t)l_tls_offset;
    return true;
}
