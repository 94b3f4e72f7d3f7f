/* Variant I: blocks lie behind the thread pointer, that of the executable first, after the two
 * words of the thread control block. */
#include "label/tls_offset.h"

#define CONTROL_BLOCK_BYTES 16u

int64_t tls_offset_of_main(const struct tls_segment *segment)
{
    uint64_t alignment = segment->alignment ? segment->alignment : 1;
    uint64_t pad = (segment->address - CONTROL_BLOCK_BYTES) % alignment;
    return (int64_t)(CONTROL_BLOCK_BYTES + pad);
}

/* -1 and -2, in glibc's sysdeps/aarch64/nptl/tls.h. */
bool tls_offset_of_library(uint64_t l_tls_offset, int64_t *ret_offset)
{
    if (l_tls_offset >= UINT64_MAX - 1)
        return false;
    *ret_offset = (int64_t)l_tls_offset;
    return true;
}
