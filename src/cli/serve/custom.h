/* The custom profiles of the processes that are sampled (fgprof_profiles.h). */
#ifndef FGPROF_CLI_SERVE_CUSTOM_H
#define FGPROF_CLI_SERVE_CUSTOM_H

#include "cli/select_pids.h"

#include <stdint.h>

struct custom {
    char *name;
    uint64_t values; /* of all processes */
};

struct customs {
    struct custom *items; /* sorted by name */
    size_t count;
};

/* Lists them. Processes that have none, or can't be read, are left out. The caller frees what is
 * listed. Returns 0 or -ENOMEM. */
int customs_list(const struct selected_pids *targets, struct customs *ret_customs);
void customs_free(struct customs *customs);

#endif
