#include "mapping/space.h"
#include "base/upper_bound.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* If memory never matches a file's first page, because the page was written to or is not mapped,
 * that proves nothing, and the file is checked only rarely. It is not ignored, because libraries
 * may have taken turns each time between this check and the reading of maps that it requested. */
#define UNLIKE_MAX 8
#define UNLIKE_PAUSE_NS 200000000

int mapping_copy(const struct mapping *from, struct mapping *ret_copy)
{
    struct mapping copy = *from;
    if (copy.module)
        copy.module->users++;
    else
        copy.path = strdup(from->path);
    if (!copy.path)
        return -ENOMEM;
    *ret_copy = copy;
    return 0;
}

void mapping_drop(struct mapping *mapping)
{
    if (mapping->module)
        mapping->module->users--;
    else
        free(mapping->path);
}

size_t space_bytes(const struct space *space)
{
    return sizeof *space + space->mapping_capacity * sizeof *space->mappings;
}

void space_empty(struct space *space)
{
    for (size_t i = 0; i < space->mapping_count; i++)
        mapping_drop(&space->mappings[i]);
    free(space->mappings);
    space->mappings = NULL;
    space->mapping_count = space->mapping_capacity = 0;
    space->last = NULL;
}

void space_free(struct space *space)
{
    if (!space)
        return;
    space_empty(space);
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

const struct mapping *space_next_module(const struct space *space, struct module_walk *walk)
{
    while (walk->next < space->mapping_count) {
        const struct mapping *mapping = &space->mappings[walk->next++];
        if (!mapping->has_bias || !mapping->module || mapping->module == walk->last)
            continue;
        walk->last = mapping->module;
        return mapping;
    }
    return NULL;
}

/* Unwind tables are next to the code that they describe, in mappings that are not executable and so
 * not in the table: they are found through the bias of the code's mapping. */
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

static bool has_memory(const struct mapping *mapping, uint64_t address)
{
    return mapping->has_bias && module_has_memory(mapping->module, address - mapping->bias);
}

/* The memory of files does not overlap, so it is that of the code next to it, before or behind. */
const struct mapping *space_find_memory(const struct space *space, uint64_t address)
{
    size_t after = UPPER_BOUND(space->mappings, space->mapping_count, start, address);
    size_t before = after;
    while (before > 0 && !space->mappings[before - 1].module)
        before--;
    while (after < space->mapping_count && !space->mappings[after].module)
        after++;
    if (before > 0 && has_memory(&space->mappings[before - 1], address))
        return &space->mappings[before - 1];
    if (after < space->mapping_count && has_memory(&space->mappings[after], address))
        return &space->mappings[after];
    return NULL;
}

bool space_is_replaced(struct space *space, pid_t tid, const uint64_t *addresses, size_t count,
                       uint64_t since_ns, uint64_t now_ns)
{
    bool is_replaced = false;
    for (size_t i = 0; i < count; i++) {
        const struct mapping *found = space_find(space, addresses[i]);
        if (!found || !found->has_bias || found->checked_ns >= since_ns ||
            (found->unlike >= UNLIKE_MAX && now_ns - found->checked_ns < UNLIKE_PAUSE_NS))
            continue;
        struct mapping *mapping = &space->mappings[found - space->mappings];
        mapping->checked_ns = now_ns;
        bool is_unlike = module_compare(mapping->module, tid, mapping->bias) != 0;
        mapping->unlike = is_unlike ? mapping->unlike + 1 : 0;
        is_replaced = is_replaced || mapping->unlike;
    }
    return is_replaced;
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

void space_keep_sampled(struct space *space, bool keeps_main)
{
    size_t kept = 0;
    for (size_t i = 0; i < space->mapping_count; i++) {
        struct mapping *mapping = &space->mappings[i];
        if (mapping->is_sampled || (keeps_main && mapping->is_main))
            space->mappings[kept++] = *mapping;
        else
            mapping_drop(mapping);
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

void space_retire(struct space *space)
{
    space_keep_sampled(space, true);
    space->is_retired = true;
}
