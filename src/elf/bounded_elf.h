/* ELF files by libelf, which makes room for whatever a file claims to have, and a sparse file can
 * claim any number of sections, of any size. Through here it is asked only for what a linker may
 * have made: what is larger is as if it were not there. */
#ifndef FGPROF_ELF_BOUNDED_ELF_H
#define FGPROF_ELF_BOUNDED_ELF_H

#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>

#define BUILD_ID_BYTES_MAX 64

/* Opens the file `fd`, or where that is -1 the `bytes` at `memory`, for elf_end; they must outlive
 * it. NULL where it is no ELF file of 64 bits and little-endian, as both architectures have them.
 */
Elf *bounded_elf_open(int fd, const unsigned char *memory, size_t bytes);

/* NULL: it has no name. Lives as long as `elf`. */
const char *bounded_elf_section_name(Elf *elf, const GElf_Shdr *section);

/* The string at `offset` in section number `strings`; NULL: there is none. Lives as long as `elf`.
 */
const char *bounded_elf_string(Elf *elf, size_t strings, size_t offset);

/* Copies the build id to `id`. Returns how long it is, 0 where there is none. */
size_t bounded_elf_build_id(Elf *elf, unsigned char id[BUILD_ID_BYTES_MAX]);

/* Sections of a file do not lie over each other, so that all that are read have no more bytes than
 * it: `left` is how many it has at first, and less with each section. Returns false where a section
 * has more than is left, or than TABLE_BYTES_MAX. */
#define TABLE_BYTES_MAX ((uint64_t)512 << 20)
static inline bool bounded_elf_take_bytes(uint64_t *left, uint64_t section_bytes)
{
    if (section_bytes > *left || section_bytes > TABLE_BYTES_MAX)
        return false;
    *left -= section_bytes;
    return true;
}

#endif
