#include "recorder/sites.h"
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

uint64_t sites_key(pid_t tid, const struct snapshot *snapshot, const struct stack *stack)
{
    uint64_t place[3] = {(uint64_t)tid, registers_pc(&snapshot->registers),
                         registers_sp(&snapshot->registers)};
    return hash_bytes(stack->addresses, stack->depth * sizeof *stack->addresses,
                      hash_bytes(place, sizeof place, 0));
}

static bool is_same(const void *owner, uint32_t item, const void *key)
{
    return ((const struct sites *)owner)->items[item].key == *(const uint64_t *)key;
}

struct site *sites_find(const struct sites *sites, uint64_t key)
{
    uint32_t found = index_find(&sites->index, key, is_same, sites, &key);
    return found == INDEX_NONE ? NULL : &sites->items[found];
}

int sites_add(struct sites *sites, uint64_t key)
{
    if (array_reserve((void **)&sites->items, &sites->capacity, sites->count + 1,
                      sizeof *sites->items) ||
        index_add(&sites->index, key, (uint32_t)sites->count))
        return -ENOMEM;
    sites->items[sites->count++] = (struct site){.key = key};
    return 0;
}

void sites_free(struct sites *sites)
{
    free(sites->items);
    index_free(&sites->index);
    *sites = (struct sites){0};
}
