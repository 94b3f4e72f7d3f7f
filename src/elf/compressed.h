/* Compressed sections, in either form: marked SHF_COMPRESSED (gABI, "Section Compression"), or in
 * the older GNU form, named .zdebug_*. */
#ifndef FGPROF_ELF_COMPRESSED_H
#define FGPROF_ELF_COMPRESSED_H

#include "elf/section.h"

/* The section's contents, which the caller frees. `is_gnu`: it has the older form. NULL if it is
 * damaged, is compressed in an unknown way or by zstd when this program was built without libzstd,
 * or has more than `bytes_max` bytes, compressed or not. `bytes_max` is at most 1 GiB. */
unsigned char *section_decompress(const struct section *section, bool is_gnu, uint64_t bytes_max,
                                  size_t *ret_bytes);

#endif
