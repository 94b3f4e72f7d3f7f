/* Sections that zstd compressed (ELFCOMPRESS_ZSTD of the gABI), which libelf can't decompress
 * before 0.189. */
#ifndef FGPROF_ELF_ZSTD_SECTION_H
#define FGPROF_ELF_ZSTD_SECTION_H

#include <gelf.h>

/* What the section held, of header->ch_size bytes, which the caller has to bound; the caller frees
 * it. NULL where it was not zstd, is damaged or of another size, and where this program was built
 * without libzstd. */
unsigned char *zstd_section_decompress(Elf_Scn *scn, const GElf_Chdr *header);

#endif
