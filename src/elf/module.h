/* An ELF file that processes run code from, and what was read from it. It is kept open, so its
 * names can still be read after it is deleted or replaced, or its process is gone. */
#ifndef FGPROF_ELF_MODULE_H
#define FGPROF_ELF_MODULE_H

#include "elf/bounded_elf.h"
#include "elf/image.h"

struct segment { /* a PT_LOAD of the file */
    uint64_t offset, file_bytes;
    uint64_t address, memory_bytes;
    bool executable;
};

/* The binary search table of .eh_frame_hdr, in the module's own addresses. */
struct unwind_table {
    uint64_t header_address; /* base of the table's offsets; 0: there is none */
    uint64_t entries_address;
    uint64_t entry_count;
};

/* A function that has call frame information. */
struct cfi_function {
    uint64_t start;    /* the module's own address */
    uint64_t position; /* of its entry (FDE): see cfi.h */
};

/* A section of call frame information, for code without such a table. */
struct cfi_section {
    uint64_t address;      /* for .eh_frame: the module's own */
    uint64_t offset;       /* in the file */
    uint64_t bytes;        /* 0: there is none */
    bool is_compressed;    /* in the file, and not decompressed yet: see elf_file_decompress */
    unsigned char *memory; /* owned contents of a section that was compressed; else NULL */
    /* Made at first use: see cfi_find. */
    struct cfi_function *functions; /* sorted by start */
    size_t function_count;
    bool has_functions;
};

/* PT_TLS: what each thread has a copy of. */
struct tls_segment {
    uint64_t address; /* the module's own */
    uint64_t bytes;   /* in memory; 0: there is none */
    uint64_t alignment;
};

struct module_part {
    uint64_t address; /* the module's own */
    uint64_t bytes;   /* 0: there is none */
};

/* Says whether a file has Go code, and where its function table may be (see pclntab.h). */
struct go_traces {
    struct module_part pclntab; /* the section */
    bool is_go;                 /* it has sections that only Go's linker makes */
    bool has_sections;          /* of any kind; without any, is_go says nothing */
};

/* The forms of Go's function table, named by the first version of Go that has them. */
enum pclntab_form { PCLNTAB_1_2, PCLNTAB_1_16, PCLNTAB_1_18, PCLNTAB_1_20 };

/* Where its parts are, in the module's own addresses. Found at first use: see pclntab_of. */
struct pclntab {
    struct module *module; /* that it is of; NULL: there is none, or it was not sought yet */
    bool was_sought;
    enum pclntab_form form;
    unsigned quantum; /* bytes of the shortest instruction, the unit of code lengths */
    uint64_t address;
    uint64_t text; /* base of the functions' addresses */
    uint64_t function_count;
    uint64_t function_table;
    uint64_t records; /* base of the functions' record offsets */
    uint64_t names;
    uint64_t units; /* where the file names of each compilation unit are */
    uint64_t files;
    uint64_t tables;
    uint64_t inline_data; /* base of the offsets of inlined calls; 0: unknown */
};

struct function_range {
    uint64_t start, end; /* addresses of the module */
};

/* Read at first use: see functions_find. */
struct functions {
    struct function_range *items; /* sorted by start, each once */
    size_t count, capacity;
    bool were_read;
};

struct stub {
    uint64_t start, end; /* addresses of the module */
    char *name;          /* of the function that it calls; NULL if that has none */
    uint64_t resolver;   /* the module's own function that chooses the target (STT_GNU_IFUNC); else
                            0 */
};

/* Read at first use: see stubs_find. */
struct stubs {
    struct stub *items; /* sorted by start */
    size_t count, capacity;
    bool were_read;
};

struct module {
    uint32_t number; /* in struct modules: another one gets it when this one has gone */
    uint32_t serial; /* the same, but no other one ever gets it */
    size_t users;    /* mappings that refer to it */
    unsigned dev_major, dev_minor;
    uint64_t inode;
    char *path;         /* as the process sees it */
    int root_fd_plus_1; /* the process's root directory if it is not ours, as in a container; 0: it
                           is ours */
    bool is_readable;   /* false: no file could be opened, or it is not ELF; image is then empty,
                           unless it is a jitdump */
    bool is_orphan;     /* its process had gone before it could be opened, or the file could not be
                           read then: it is opened again for another process */
    int error;          /* why it is not readable: -ENOEXEC, an error of mapped_file_open, or
                           another; else 0 */
    const char *_Atomic unread; /* why its unwind tables and code could not be read, as text; NULL:
                                   no failure so far. Any thread may read this. */
    struct image image;
    struct segment *segments;
    size_t segment_count;
    uint64_t entry_address; /* where a process that runs it starts */
    struct unwind_table unwind_table;
    struct cfi_section eh_frame; /* set only if there is no unwind_table */
    struct cfi_section debug_frame;
    struct functions functions;
    struct stubs stubs;
    struct module_part dynamic; /* PT_DYNAMIC */
    struct tls_segment tls;
    struct go_traces go;
    struct pclntab pclntab;
    unsigned char build_id[BUILD_ID_BYTES_MAX];
    size_t build_id_bytes; /* 0: it has none */
};

/* Turns a file offset into the module's own address, as its symbols have it. The segment is found
 * by offset: there may be several (lld and mold make them), and the first need not start at 0.
 * Returns false if no segment holds it. */
bool module_address_of_offset(const struct module *module, uint64_t offset, uint64_t *ret_address);

/* Opens the module's file for libelf; to be closed with elf_end. NULL if it is not an ELF file. */
Elf *module_open_elf(struct module *module);

/* Reads bytes at one of the module's own addresses. Returns false if they are not in the file. */
bool module_read(struct module *module, uint64_t address, void *buffer, size_t bytes);

/* Whether one of the module's own addresses is in its memory, code or data. */
bool module_has_memory(const struct module *module, uint64_t address);

/* The end of the segment whose code in the file holds an address; 0: none does. */
uint64_t module_code_end(const struct module *module, uint64_t address);

#endif
