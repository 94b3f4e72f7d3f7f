/* The file that provides the program's malloc: libc, another library or the program itself. */
#ifndef FGPROF_AGENT_PROVIDER_H
#define FGPROF_AGENT_PROVIDER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct provider {
    char path[PATH_MAX]; /* as the dynamic linker has it */
    char name[64];       /* base name */
    bool is_program;
    uint64_t start, limit; /* where it is loaded */
};

/* The file that has code at this address. Returns false if none has. */
bool provider_at(uint64_t address, struct provider *ret_provider);

/* The file that calls of malloc go to if the agent does not come first. */
bool provider_before_agent(struct provider *ret_provider);

#endif
