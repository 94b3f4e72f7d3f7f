/* The files that are loaded into the program. */
#ifndef FGPROF_AGENT_MODULES_H
#define FGPROF_AGENT_MODULES_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* Valid while it is visited. */
struct module {
    const char *path; /* as the dynamic linker has it; "" for the program itself */
    uint64_t base;    /* added to the addresses that the file has */
    const ElfW(Phdr) * segments;
    unsigned segment_count;
    uint64_t start, limit;           /* where it is loaded */
    uint64_t code_start, code_limit; /* what of it can be executed */
    uint64_t loads;                  /* how many files have been loaded so far */
};

/* Visits all modules, in the order in which symbols are looked up, until `visit` returns true.
 * Returns whether it did. No file is loaded or unloaded meanwhile. */
bool modules_visit(bool (*visit)(const struct module *module, void *context), void *context);

static inline bool module_has(const struct module *module, uint64_t address)
{
    return address >= module->start && address < module->limit;
}

/* What is behind the last slash. */
static inline const char *file_name(const char *path)
{
    const char *name = path;
    for (const char *at = name; *at; at++) {
        if (*at == '/')
            name = at + 1;
    }
    return name;
}

#endif
