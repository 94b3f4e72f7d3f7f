/* An address space: which code a process has mapped where.
 *
 * A table of executable mappings that do not overlap, sorted by address, so that an address has one
 * meaning for as long as the space lives. Mappings that appear later are added. If one contradicts
 * a known one, or the process executes another program, or replaces code that it generated (see
 * jit.h), a new space begins. Stacks that were counted in the old one keep their meaning. */
#ifndef FGPROF_MAPPING_SPACE_H
#define FGPROF_MAPPING_SPACE_H

#include "mapping/modules.h"
#include "jit/jit.h"

struct mapping {
    uint64_t start, end;
    uint64_t offset;       /* in the file, of `start` */
    struct module *module; /* NULL: anonymous code, such as a JIT's */
    char *path;            /* as maps shows it: the module's, or owned; "" for anonymous code */
    uint64_t bias;         /* added to the module's own addresses to get the process's */
    bool is_main;          /* belongs to the program itself, not to a library */
    bool has_bias;         /* false: no readable file, or no segment at this offset */
    bool is_sampled;       /* holds an address that was counted */
    unsigned unlike;       /* how often in a row space_is_replaced saw a difference */
    uint64_t checked_ns;   /* when space_is_replaced last looked */
};

struct space {
    uint32_t id; /* its number in struct spaces (see spaces.h) */
    pid_t pid;
    struct mapping *mappings;
    size_t mapping_count, mapping_capacity;
    const struct mapping *last; /* the last one found: most look-ups are close to each other */
    struct jit *jit; /* generated code, shared by all spaces of the program; NULL: none was noted */
    bool owns_jit;
    bool is_retired;  /* its program has ended */
    bool is_left;     /* its program is in another one now, and may come back */
    bool is_free;     /* nothing refers to it: its number is given to the next one */
    bool has_context; /* maps had a mapping that is named as a process context (OTEP 4719) */
};

/* Makes a mapping like `from`, which refers to its module too. Returns 0 or -ENOMEM. */
int mapping_copy(const struct mapping *from, struct mapping *ret_copy);
void mapping_drop(struct mapping *mapping);

/* The mapping that holds `address`, or NULL. */
const struct mapping *space_find(struct space *space, uint64_t address);

/* Iterates over the modules of a space by their first mappings with a known bias. Starts zeroed. */
struct module_walk {
    size_t next;
    const struct module *last;
};

/* A mapping of the next module, or NULL. */
const struct mapping *space_next_module(const struct space *space, struct module_walk *walk);

/* Reads bytes of a mapped file at an address of the process, whether that part of the file is
 * executable or not. Returns false if no file has them. */
bool space_read_file(struct space *space, uint64_t address, void *buffer, size_t bytes);

/* A mapping of the file whose memory, code or data, has that address; or NULL. */
const struct mapping *space_find_memory(const struct space *space, uint64_t address);

/* Whether a file that, according to the space, holds one of the addresses has been replaced in
 * memory: compares its first page with that of thread `tid`. Reading maps for every sample would
 * take too long, and a library may be unloaded and another loaded in its place. A file that was
 * checked since `since_ns` is not checked again. `now_ns` is CLOCK_MONOTONIC. */
bool space_is_replaced(struct space *space, pid_t tid, const uint64_t *addresses, size_t count,
                       uint64_t since_ns, uint64_t now_ns);

/* Notes an address of generated code that was sampled in the space. Returns 0 or -ENOMEM. */
int space_note_jit(struct space *space, uint64_t address);

/* Notes that a stack with these addresses was counted. */
void space_note_sampled(struct space *space, const uint64_t *addresses, size_t count);

size_t space_bytes(const struct space *space);

/* Keeps only the mappings that were sampled, and that of the program itself if `keeps_main`. */
void space_keep_sampled(struct space *space, bool keeps_main);

/* To be called when the space's program has ended: keeps only what names need. */
void space_retire(struct space *space);

/* Call this for a retired space that nothing refers to: keeps only its generated code, which other
 * spaces may share. */
void space_empty(struct space *space);

void space_free(struct space *space);

#endif
