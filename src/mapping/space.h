/* An address space: what code a process has mapped where.
 *
 * A table of executable mappings that do not overlap, sorted by address, so that an address means
 * one thing for as long as the space lives. Mappings that appear later are added. Where one appears
 * that contradicts a known one, or the process executes another program, or replaces code that it
 * generated (see jit.h), a new space begins, and stacks that were counted in the old one keep their
 * meaning. */
#ifndef FGPROF_MAPPING_SPACE_H
#define FGPROF_MAPPING_SPACE_H

#include "mapping/modules.h"
#include "jit/jit.h"

struct mapping {
    uint64_t start, end;
    uint64_t offset;       /* of the file at start */
    struct module *module; /* NULL: anonymous code, as a JIT's */
    char *path;            /* as maps shows it; "" for anonymous code */
    uint64_t bias;         /* what is added to the module's own addresses to get the process's */
    bool is_main;          /* of the program itself, not of a library */
    bool has_bias;         /* false: no readable file, or no segment at this offset */
    bool is_sampled;       /* an address that was counted lies in it */
    unsigned unlike;       /* how often in a row space_is_replaced found it so */
    uint64_t checked_ns;   /* when it looked last */
};

struct space {
    uint32_t id;     /* its number in struct spaces (see spaces.h) */
    uint32_t origin; /* of the first that it is a branch of, or its own: the files lie alike */
    pid_t pid;
    struct mapping *mappings;
    size_t mapping_count, mapping_capacity;
    const struct mapping *last; /* the last one found: most look-ups are near each other */
    struct jit *jit; /* code that the program generates: of all its spaces; NULL: none was noted */
    bool owns_jit;
};

/* The mapping that holds `address`, or NULL. */
const struct mapping *space_find(struct space *space, uint64_t address);

/* Reads bytes of a mapped file at an address of the process, whether that part of the file is
 * executable or not. Returns false where no file has them. */
bool space_read_file(struct space *space, uint64_t address, void *buffer, size_t bytes);

/* Notes an address of generated code that was sampled in the space. Returns 0 or -ENOMEM. */
int space_note_jit(struct space *space, uint64_t address);

/* Notes that a stack with these addresses was counted. */
void space_note_sampled(struct space *space, const uint64_t *addresses, size_t count);

/* The program of the space has ended: keeps of it only what names need. */
void space_retire(struct space *space);

void space_free(struct space *space);

#endif
