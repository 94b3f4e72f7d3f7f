#include "proc/stack_areas.h"
#include "proc/maps.h"
#include "base/array.h"
#include "base/upper_bound.h"

#include <stdlib.h>
#include <string.h>

static int take_in(void *context, const struct maps_entry *entry)
{
    struct stack_areas *areas = context;
    if (!entry->readable && !entry->executable)
        return 0;
    const struct stack_area area = {
        entry->start, entry->end, !entry->inode && strcmp(entry->path, "[stack]") == 0,
        entry->inode && !entry->writable, entry->executable,
        /* File systems without a block device, FUSE among them, have major number 0. */
        entry->inode && !entry->dev_major};
    return array_append(&areas->items, &areas->count, &areas->capacity, area);
}

int stack_areas_read(struct stack_areas *areas, int maps_fd)
{
    areas->count = 0;
    int err = maps_read(maps_fd, take_in, areas);
    if (err)
        areas->count = 0;
    return err;
}

const struct stack_area *stack_areas_find(const struct stack_areas *areas, uint64_t address)
{
    size_t at = UPPER_BOUND(areas->items, areas->count, end, address);
    if (at == areas->count || (areas->items[at].start > address && !areas->items[at].grows_down))
        return NULL;
    return &areas->items[at];
}

uint64_t stack_areas_end(const struct stack_areas *areas, uint64_t sp)
{
    const struct stack_area *area = stack_areas_find(areas, sp);
    return area ? area->end : 0;
}

void stack_areas_free(struct stack_areas *areas)
{
    free(areas->items);
    *areas = (struct stack_areas){0};
}
