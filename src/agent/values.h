/* The values of custom profiles, and their stacks, in memory that fgprof-c reads: values_format.h.
 * Where each value is kept is known here alone, in memory that no allocator provides. Any thread
 * may call these functions; a signal handler may not.
 *
 * A child of fork has neither of the two memories, and finds locks as new: it has the profiles by
 * their names, without values, and makes memory of its own when it adds one. */
#ifndef FGPROF_AGENT_VALUES_H
#define FGPROF_AGENT_VALUES_H

#include "agent/capture.h"
#include "agent/values_format.h"

struct fgprof_custom_profile {
    uint32_t number; /* in values_header.profiles */
    char name[VALUES_NAME_BYTES];
};

/* Makes a profile of this name, which is shorter than VALUES_NAME_BYTES. Errors: -EEXIST, -ENOSPC,
 * -ENOMEM, -EFBIG, those of memfd_create(2). */
int values_new_profile(const char *name, struct fgprof_custom_profile **ret_profile);

/* Profile number `number`, NULL: there are not so many. */
struct fgprof_custom_profile *values_profile(uint32_t number);

/* Errors: -EEXIST, -ENOMEM, in a child of fork those of values_new_profile. */
int values_add(const struct fgprof_custom_profile *profile, uint64_t value, uint32_t skip,
               const struct capture *capture);

void values_remove(const struct fgprof_custom_profile *profile, uint64_t value);

uint64_t values_count(const struct fgprof_custom_profile *profile);

#endif
