#include "worker/lock_sites.h"
#include "base/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64

/* A program's own functions matter only if it is static, and reading the names of a large program
 * would take long. */
static bool may_be_libc(const struct space *space, const struct mapping *mapping)
{
    if (lock_is_glibc_file(mapping->path))
        return true;
    for (size_t i = 0; i < space->mapping_count; i++) {
        const struct mapping *other = &space->mappings[i];
        if (!other->is_main && other->module && strstr(other->path, ".so"))
            return false;
    }
    return mapping->is_main;
}

static int name_frame(struct lock_sites *sites, struct space *space, uint64_t address,
                      char name[NAME_BYTES], struct lock_frame *frame)
{
    const struct mapping *mapping = space_find(space, address);
    *frame = (struct lock_frame){name, ""};
    *name = '\0';
    if (!mapping || !mapping->module || !mapping->has_bias || !may_be_libc(space, mapping))
        return 0;
    const struct query function = {.kind = QUERY_NAME, .address = address - mapping->bias};
    union query_answer answer;
    int err = query_ask(sites->queries, mapping->module, &function, &answer);
    if (!err)
        snprintf(name, NAME_BYTES, "%.*s", NAME_BYTES - 1, answer.function.name);
    frame->file = mapping->path;
    return err == -ENOENT ? 0 : err;
}

/* Returns 0; -EAGAIN if names can't be looked up at present; or -ENOMEM. */
static int find_site(struct lock_sites *sites, const struct results *results,
                     const struct counted_stack *stack, struct lock_site *ret_site)
{
    char names[LOCK_FRAMES_MAX][NAME_BYTES];
    struct lock_frame frames[LOCK_FRAMES_MAX];
    size_t depth = stack->depth < LOCK_FRAMES_MAX ? stack->depth : LOCK_FRAMES_MAX;
    int err = 0;
    if (stack->space == NO_SPACE)
        depth = 0;
    for (size_t i = 0; i < depth && !err; i++)
        err = name_frame(sites, results->spaces.items[stack->space],
                         results->stacks.addresses[stack->first_address + i], names[i], &frames[i]);
    if (!err)
        *ret_site = lock_site_of(frames, depth);
    return err;
}

int lock_sites_get(struct lock_sites *sites, const struct results *results, uint32_t stack,
                   struct lock_site *ret_site)
{
    if (array_reserve(&sites->items, &sites->capacity, stack + 1u))
        return -ENOMEM;
    while (sites->count <= stack)
        sites->items[sites->count++] = (struct lock_site){.kind = RESOURCE_NOT_KNOWN};
    if (sites->items[stack].kind == RESOURCE_NOT_KNOWN) {
        int err = find_site(sites, results, &results->stacks.stacks[stack], &sites->items[stack]);
        *ret_site = (struct lock_site){.kind = RESOURCE_FUTEX};
        if (err)
            return err == -EAGAIN ? 0 : err;
    }
    *ret_site = sites->items[stack];
    return 0;
}

void lock_sites_keep(struct lock_sites *sites, const struct renumber *stacks)
{
    size_t kept = 0;
    for (size_t i = 0; i < sites->count; i++) {
        if (renumber_of(stacks, (uint32_t)i) != ROW_GONE)
            sites->items[kept++] = sites->items[i];
    }
    sites->count = kept;
}

void lock_sites_free(struct lock_sites *sites)
{
    free(sites->items);
    *sites = (struct lock_sites){.queries = sites->queries};
}
