/* Reads ELF files through libelf, within bounds. libelf allocates memory for whatever a file claims
 * to contain, and a sparse file can claim any number of sections of any size. Here libelf is asked
 * only for what a linker may have made; anything larger is treated as absent. */
#ifndef FGPROF_ELF_BOUNDED_ELF_H
#define FGPROF_ELF_BOUNDED_ELF_H

#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>

#define BUILD_ID_BYTES_MAX 64

/* Opens the file `fd` or, if that is -1, the `bytes` at `memory`, which must outlive the result.
 * The caller closes it with elf_end. NULL if it is not a 64-bit little-endian ELF file, the only
 * kind that both architectures have. */
Elf *bounded_elf_open(int fd, const unsigned char *memory, size_t bytes);

/* The section after `scn`, or the first one if `scn` is NULL, that has a name; NULL: there are no
 * more. The name is valid as long as `elf`. */
Elf_Scn *bounded_elf_next_section(Elf *elf, Elf_Scn *scn, GElf_Shdr *ret_header,
                                  const char **ret_name);

/* The string at `offset` in section number `strings`; NULL if there is none. Valid as long as
 * `elf`. */
const char *bounded_elf_string(Elf *elf, size_t strings, size_t offset);

/* Copies the build id to `id`. Returns its length, 0 if there is none. */
size_t bounded_elf_build_id(Elf *elf, unsigned char id[BUILD_ID_BYTES_MAX]);

/* The sections of a file do not overlap, so together those that are read have at most as many bytes
 * as the file. `left` starts as the file's size and shrinks with each section. Returns false if a
 * section has more bytes than are left, or than TABLE_BYTES_MAX. */
#define TABLE_BYTES_MAX ((uint64_t)512 << 20)
static inline bool bounded_elf_take_bytes(uint64_t *left, uint64_t section_bytes)
{
    if (section_bytes > *left || section_bytes > TABLE_BYTES_MAX)
        return false;
    *left -= section_bytes;
    return true;
}

#endif
