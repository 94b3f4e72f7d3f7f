#include "mapping/spaces.h"
#include "mapping/space_maps.h"
#include "base/array.h"
#include "base/upper_bound.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REUSED_MAX 64 /* how many earlier spaces are looked at */

int spaces_add(struct spaces *spaces, struct modules *modules, pid_t pid, int proc_fd, pid_t tid,
               int maps_fd, struct space **ret_space)
{
    if (array_reserve(&spaces->items, &spaces->capacity, spaces->count + 1))
        return -ENOMEM;
    struct space *space = calloc(1, sizeof *space);
    if (!space)
        return -ENOMEM;
    space->pid = pid;
    space->id = space->origin = (uint32_t)spaces->count;
    struct maps_reading reading = {
        .space = space, .modules = modules, .proc_fd = proc_fd, .tid = tid};
    int err = space_read_maps(&reading, maps_fd);
    /* A mapping that changed while we read contradicts an earlier line: what was read stands. */
    if (err == -ESTALE)
        err = 0;
    if (!err && !reading.lines)
        err = -ESRCH;
    if (err) {
        space_free(space);
        return err;
    }
    spaces->items[spaces->count++] = space;
    *ret_space = space;
    return 0;
}

/* Whether `old` has all that `new` has, unchanged. Anonymous code is never known to be
 * unchanged. */
static bool holds(const struct space *old, const struct space *new)
{
    for (size_t i = 0; i < new->mapping_count; i++) {
        const struct mapping *mapping = &new->mappings[i];
        size_t at = UPPER_BOUND(old->mappings, old->mapping_count, end, mapping->start);
        const struct mapping *known = &old->mappings[at];
        if (!*mapping->path || at == old->mapping_count || known->module != mapping->module ||
            strcmp(known->path, mapping->path) != 0 || known->start > mapping->start ||
            known->end < mapping->end || known->bias != mapping->bias)
            return false;
    }
    return true;
}

/* The space that was added last, or an earlier one of its process that says the same: a program
 * that loads the same libraries in turn, at the same place, returns to an earlier state. */
static struct space *reuse(struct spaces *spaces, const struct jit *jit)
{
    struct space *new = spaces->items[spaces->count - 1];
    size_t oldest = spaces->count > REUSED_MAX ? spaces->count - REUSED_MAX : 0;
    for (size_t i = spaces->count - 1; i > oldest; i--) {
        struct space *old = spaces->items[i - 1];
        if (old->pid == new->pid && (!old->jit || old->jit == jit) && holds(old, new)) {
            spaces->count--;
            space_free(new);
            return old;
        }
    }
    return new;
}

int spaces_refresh(struct spaces *spaces, struct modules *modules, int proc_fd, pid_t tid,
                   int maps_fd, struct space **space, bool *ret_changed)
{
    struct maps_reading reading = {
        .space = *space, .modules = modules, .proc_fd = proc_fd, .tid = tid};
    int err = space_read_maps(&reading, maps_fd);
    *ret_changed = reading.changed;
    if (err != -ESTALE)
        return err;
    *ret_changed = true;
    struct jit *jit = (*space)->jit;
    err = spaces_add(spaces, modules, (*space)->pid, proc_fd, tid, maps_fd, space);
    if (err)
        return err;
    *space = reuse(spaces, jit);
    if (!(*space)->jit)
        (*space)->jit = jit;
    return 0;
}

int spaces_branch(struct spaces *spaces, struct space **space)
{
    const struct space *from = *space;
    struct space *branch = calloc(1, sizeof *branch);
    struct mapping *mappings = calloc(from->mapping_count + 1, sizeof *mappings);
    int err = branch && mappings ? 0 : -ENOMEM;
    if (!err)
        err = array_reserve(&spaces->items, &spaces->capacity, spaces->count + 1);
    if (err) {
        free(mappings);
        free(branch);
        return err;
    }
    *branch = (struct space){.id = (uint32_t)spaces->count,
                             .origin = from->origin,
                             .pid = from->pid,
                             .mappings = mappings,
                             .mapping_capacity = from->mapping_count + 1,
                             .jit = from->jit};
    for (size_t i = 0; i < from->mapping_count; i++) {
        mappings[i] = from->mappings[i];
        mappings[i].path = strdup(from->mappings[i].path);
        if (!mappings[i].path) {
            space_free(branch);
            return -ENOMEM;
        }
        branch->mapping_count++;
    }
    spaces->items[spaces->count++] = branch;
    *space = branch;
    return 0;
}

void spaces_free(struct spaces *spaces)
{
    for (size_t i = 0; i < spaces->count; i++)
        space_free(spaces->items[i]);
    free(spaces->items);
    *spaces = (struct spaces){0};
}
