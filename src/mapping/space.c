#include "mapping/space.h"
#include "base/upper_bound.h"

#include <stdlib.h>

void space_free(struct space *space)
{
    if (!space)
        return;
    for (size_t i = 0; i < space->mapping_count; i++)
        free(space->mappings[i].path);
    free(space->mappings);
    if (space->owns_jit)
        jit_free(space->jit);
    free(space);
}

const struct mapping *space_find(struct space *space, uint64_t address)
{
    if (space->last && address - space->last->start < space->last->end - space->last->start)
        return space->last;
    /* The first mapping that ends after it. */
    size_t at = UPPER_BOUND(space->mappings, space->mapping_count, end, address);
    if (at == space->mapping_count || space->mappings[at].start > address)
        return NULL;
    space->last = &space->mappings[at];
    return space->last;
}

/* Unwind tables lie next to the code that they describe, in mappings that are not executable and so
 * not in the table: the bias of the code's mapping finds them. */
bool space_read_file(struct space *space, uint64_t address, void *buffer, size_t bytes)
{
    const struct mapping *last = space->last;
    if (last && last->has_bias && module_read(last->module, address - last->bias, buffer, bytes))
        return true;
    for (size_t i = 0; i < space->mapping_count; i++) {
        const struct mapping *mapping = &space->mappings[i];
        if (mapping->has_bias &&
            module_read(mapping->module, address - mapping->bias, buffer, bytes))
            return true;
    }
    return false;
}

int space_note_jit(struct space *space, uint64_t address)
{
    if (!space->jit) {
        int err = jit_new(&space->jit);
        if (err)
            return err;
        space->owns_jit = true;
    }
    return jit_note(space->jit, space->id, address);
}

void space_note_sampled(struct space *space, const uint64_t *addresses, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct mapping *mapping = space_find(space, addresses[i]);
        if (mapping)
            space->mappings[mapping - space->mappings].is_sampled = true;
    }
}

void space_retire(struct space *space)
{
    size_t kept = 0;
    for (size_t i = 0; i < space->mapping_count; i++) {
        struct mapping *mapping = &space->mappings[i];
        if (mapping->is_sampled || mapping->is_main)
            space->mappings[kept++] = *mapping;
        else
            free(mapping->path);
    }
    space->mapping_count = kept;
    space->last = NULL;
    struct mapping *smaller = kept ? realloc(space->mappings, kept * sizeof *smaller) : NULL;
    if (!kept)
        free(space->mappings);
    if (!kept || smaller) {
        space->mappings = smaller;
        space->mapping_capacity = kept;
    }
}
