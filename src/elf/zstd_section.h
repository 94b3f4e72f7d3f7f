/* Sections compressed by zstd (ELFCOMPRESS_ZSTD of the gABI), which libelf can't decompress before
 * 0.189. */
#ifndef FGPROF_ELF_ZSTD_SECTION_H
#define FGPROF_ELF_ZSTD_SECTION_H

#include <gelf.h>

/* The section's contents, header->ch_size bytes; the caller must have checked that size, and frees
 * them. NULL if the section is not zstd, is damaged or of another size, or if this program was
 * built without libzstd. */
unsigned char *zstd_section_decompress(Elf_Scn *scn, const GElf_Chdr *header);

#endif
