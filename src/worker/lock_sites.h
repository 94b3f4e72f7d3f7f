/* Recognizes glibc's locks by the functions of glibc at the end of stacks, whose names are looked
 * up while sampling. */
#ifndef FGPROF_WORKER_LOCK_SITES_H
#define FGPROF_WORKER_LOCK_SITES_H

#include "wait/lock.h"
#include "worker/results.h"

struct libc_names;

/* Starts zeroed. */
struct lock_sites {
    struct lock_site *items; /* by the stack's number in the results; RESOURCE_NOT_KNOWN: it was not
                                looked at yet */
    size_t count, capacity;
    struct libc_names *libcs;
    size_t libc_count, libc_capacity;
};

/* Returns 0 or -ENOMEM. */
int lock_sites_get(struct lock_sites *sites, const struct results *results, uint32_t stack,
                   struct lock_site *ret_site);

/* Stacks were dropped, and the others have new numbers. */
void lock_sites_keep(struct lock_sites *sites, const struct renumber *stacks);

/* Forgets the module, which is about to be closed. */
void lock_sites_forget_module(struct lock_sites *sites, const struct module *module);

void lock_sites_free(struct lock_sites *sites);

#endif
