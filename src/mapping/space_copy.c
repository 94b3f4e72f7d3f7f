#include "mapping/space_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A file's mapping has its module's path, which is not copied. */
static int copy_mappings(const struct space *space, struct space *copy)
{
    copy->mappings = calloc(space->mapping_count + 1, sizeof *copy->mappings);
    if (!copy->mappings)
        return -ENOMEM;
    for (; copy->mapping_count < space->mapping_count; copy->mapping_count++) {
        struct mapping *mapping = &copy->mappings[copy->mapping_count];
        *mapping = space->mappings[copy->mapping_count];
        mapping->path = mapping->module ? mapping->module->path : strdup(mapping->path);
        if (!mapping->path)
            return -ENOMEM;
    }
    return 0;
}

static int copy_space(const struct space *space, struct spaces *copies)
{
    struct space *copy = calloc(1, sizeof *copy);
    if (!copy)
        return -ENOMEM;
    copies->items[copies->count++] = copy;
    copy->id = space->id;
    copy->origin = space->origin;
    copy->pid = space->pid;
    int err = copy_mappings(space, copy);
    if (!err && space->owns_jit) {
        err = jit_copy(space->jit, &copy->jit);
        copy->owns_jit = !err;
    }
    return err;
}

/* Spaces that share another's generated code share that one's copy. */
static void share_jit(const struct spaces *spaces, struct spaces *copies)
{
    for (size_t owner = 0; owner < spaces->count; owner++) {
        if (!spaces->items[owner]->owns_jit)
            continue;
        for (size_t i = 0; i < spaces->count; i++) {
            if (spaces->items[i]->jit == spaces->items[owner]->jit)
                copies->items[i]->jit = copies->items[owner]->jit;
        }
    }
}

int spaces_copy(const struct spaces *spaces, struct spaces *ret_copy)
{
    struct spaces copy = {.items = calloc(spaces->count + 1, sizeof *copy.items)};
    int err = copy.items ? 0 : -ENOMEM;
    for (size_t i = 0; i < spaces->count && !err; i++)
        err = copy_space(spaces->items[i], &copy);
    if (err) {
        spaces_copy_free(&copy);
        return err;
    }
    share_jit(spaces, &copy);
    *ret_copy = copy;
    return 0;
}

void spaces_copy_free(struct spaces *copy)
{
    for (size_t i = 0; i < copy->count; i++) {
        struct space *space = copy->items[i];
        for (size_t j = 0; j < space->mapping_count; j++) {
            if (!space->mappings[j].module)
                free(space->mappings[j].path);
        }
        if (space->owns_jit)
            jit_free(space->jit);
        free(space->mappings);
        free(space);
    }
    free(copy->items);
    *copy = (struct spaces){0};
}
