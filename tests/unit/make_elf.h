/* ELF files built by hand: a header, program headers, and bytes at offsets. */
#ifndef FGPROF_TESTS_MAKE_ELF_H
#define FGPROF_TESTS_MAKE_ELF_H

#include "unit.h"

#include <elf.h>

#define MADE_ELF_BYTES 0x4000u

struct made_elf {
    unsigned char bytes[MADE_ELF_BYTES];
    Elf64_Ehdr header;
};

static inline void make_elf(struct made_elf *elf)
{
    memset(elf, 0, sizeof *elf);
    memcpy(elf->header.e_ident, ELFMAG, SELFMAG);
    elf->header.e_ident[EI_CLASS] = ELFCLASS64;
    elf->header.e_ident[EI_DATA] = ELFDATA2LSB;
    elf->header.e_ident[EI_VERSION] = EV_CURRENT;
    elf->header.e_type = ET_DYN;
#ifdef __aarch64__
    elf->header.e_machine = EM_AARCH64;
#else
    elf->header.e_machine = EM_X86_64;
#endif
    elf->header.e_version = EV_CURRENT;
    elf->header.e_phoff = sizeof elf->header;
    elf->header.e_ehsize = sizeof elf->header;
    elf->header.e_phentsize = sizeof(Elf64_Phdr);
    memcpy(elf->bytes, &elf->header, sizeof elf->header);
}

static inline void make_segment(struct made_elf *elf, uint32_t type, uint32_t flags,
                                uint64_t offset, uint64_t address, uint64_t file_bytes,
                                uint64_t memory_bytes)
{
    Elf64_Phdr header = {
        .p_type = type,
        .p_flags = flags,
        .p_offset = offset,
        .p_vaddr = address,
        .p_paddr = address,
        .p_filesz = file_bytes,
        .p_memsz = memory_bytes,
        .p_align = type == PT_LOAD ? 4096 : 4,
    };
    size_t at = sizeof elf->header + elf->header.e_phnum * sizeof header;
    assert_true(at + sizeof header <= sizeof elf->bytes);
    memcpy(elf->bytes + at, &header, sizeof header);
    elf->header.e_phnum++;
    memcpy(elf->bytes, &elf->header, sizeof elf->header);
}

/* Segments as lld lays them out: each on pages of its own in memory, but not in the file. */
static inline void make_lld_segments(struct made_elf *elf)
{
    make_segment(elf, PT_LOAD, PF_R, 0, 0x200000, 0x5e4, 0x5e4);
    make_segment(elf, PT_LOAD, PF_R | PF_X, 0x5f0, 0x2015f0, 0x300, 0x300);
    make_segment(elf, PT_LOAD, PF_R | PF_W, 0x8f0, 0x2028f0, 0x210, 0x710);
    make_segment(elf, PT_LOAD, PF_R | PF_W, 0xb00, 0x203b00, 0x30, 0x1030);
}

#endif
