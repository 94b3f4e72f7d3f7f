/* Recognizes glibc's locks by the glibc functions at the leaf end of stacks. The functions' names
 * are looked up while sampling. */
#ifndef FGPROF_WORKER_LOCK_SITES_H
#define FGPROF_WORKER_LOCK_SITES_H

#include "elf/query.h"
#include "wait/lock.h"
#include "worker/results.h"

/* Starts zeroed but for: */
struct lock_sites {
    struct queries *queries; /* NULL: no lock is recognized */
    struct lock_site *items; /* by the stack's number in the results; RESOURCE_NOT_KNOWN: not looked
                                up yet */
    size_t count, capacity;
};

/* Returns 0 or -ENOMEM. */
int lock_sites_get(struct lock_sites *sites, const struct results *results, uint32_t stack,
                   struct lock_site *ret_site);

/* Stacks were dropped, and the others have new numbers. */
void lock_sites_keep(struct lock_sites *sites, const struct renumber *stacks);

void lock_sites_free(struct lock_sites *sites);

#endif
