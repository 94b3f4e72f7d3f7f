#include "worker/frame_pointer_sites.h"

#include <stdlib.h>

/* A thread may move before it is stopped; then another one is tried. */
#define SITE_STOPS_MAX 3
/* Short-lived threads each add one: beyond this, all are learned again. */
#define SITES_MAX 262144

struct site_keys sites_keys(pid_t tid, const struct snapshot *snapshot, const struct stack *stack)
{
    uint64_t pc = registers_pc(&snapshot->registers);
    uint64_t place[2] = {(uint64_t)tid, registers_sp(&snapshot->registers)};
    uint64_t shared = hash_bytes(stack->addresses, stack->depth * sizeof *stack->addresses,
                                 hash_bytes(&pc, sizeof pc, 0));
    return (struct site_keys){shared, hash_bytes(place, sizeof place, shared)};
}

struct site *sites_find(const struct sites *sites, uint64_t key)
{
    uint32_t found = INDEX_FIND(&sites->index, sizeof key, &key, sites->items);
    return found == INDEX_NONE ? NULL : &sites->items[found];
}

int sites_add(struct sites *sites, uint64_t key)
{
    const struct site site = {.key = key, .stops_left = SITE_STOPS_MAX};
    uint32_t number;
    if (sites->count >= SITES_MAX)
        sites_free(sites);
    return INDEX_INTERN(&sites->index, sizeof key, &site, &sites->items, &sites->count,
                        &sites->capacity, &number);
}

void sites_free(struct sites *sites)
{
    free(sites->items);
    index_free(&sites->index);
    *sites = (struct sites){0};
}
