/* Debug information from the servers in DEBUGINFOD_URLS, through libdebuginfod (debuginfod(7)).
 *
 * That library is loaded on demand instead of linked: it brings an HTTP client with its own
 * dependencies into a program that usually runs as root and usually asks no server. */
#ifndef FGPROF_SYMBOL_DEBUG_FETCH_H
#define FGPROF_SYMBOL_DEBUG_FETCH_H

#include "fgprof.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct debug_fetch {
    uint64_t limit_ns; /* for all modules together; 0: no server is asked */
    fgprof_fetch_fn *progress;
    void *progress_context;
    /* The rest is private. */
    uint64_t spent_ns, begin_ns;
    const char *path; /* of the module that is being fetched */
};

/* Whether the library is installed. */
bool debug_fetch_is_possible(void);

/* Requests the debug information of the module by its build id. Returns a descriptor, or -ENOENT if
 * none arrives in time. The caller frees *ret_path. `fetch` may be NULL. */
int debug_fetch(struct debug_fetch *fetch, const unsigned char *build_id, size_t bytes,
                const char *module_path, char **ret_path);

#endif
