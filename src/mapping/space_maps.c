#include "mapping/space_maps.h"
#include "base/array.h"
#include "base/upper_bound.h"
#include "proc/maps.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_same_code(const struct mapping *mapping, const struct maps_entry *entry)
{
    if (strcmp(mapping->path, entry->path) != 0)
        return false;
    if (!entry->inode)
        return true; /* anonymous code that grew or was split */
    return mapping->module && mapping->module->inode == entry->inode &&
           mapping->module->dev_major == entry->dev_major &&
           mapping->module->dev_minor == entry->dev_minor &&
           mapping->start - mapping->offset == entry->start - entry->offset;
}

static int insert(struct maps_reading *reading, size_t at, const struct maps_entry *entry,
                  struct module *module)
{
    struct space *space = reading->space;
    if (array_reserve(&space->mappings, &space->mapping_capacity, space->mapping_count + 1))
        return -ENOMEM;
    struct mapping mapping = {
        .start = entry->start,
        .end = entry->end,
        .offset = entry->offset,
        .module = module,
        .path = strdup(entry->path),
        .is_main = *entry->path && maps_entry_is_at(entry, reading->program),
    };
    if (!mapping.path)
        return -ENOMEM;
    uint64_t own_address;
    if (module && module->is_readable &&
        module_address_of_offset(module, entry->offset, &own_address)) {
        mapping.bias = entry->start - own_address;
        mapping.has_bias = true;
    }
    memmove(&space->mappings[at + 1], &space->mappings[at],
            (space->mapping_count - at) * sizeof mapping);
    space->mappings[at] = mapping;
    space->mapping_count++;
    space->last = NULL;
    return 0;
}

/* Merges the mappings from `first` to before `end`, which are the same code as `entry`, with what
 * it adds to them. Returns whether it adds anything. */
static bool extend(struct space *space, size_t first, size_t end, const struct maps_entry *entry)
{
    struct mapping *known = &space->mappings[first];
    uint64_t known_end = space->mappings[end - 1].end;
    bool changed = end - first > 1 || entry->start < known->start || entry->end > known_end;
    if (entry->start < known->start) {
        known->offset = entry->offset;
        known->start = entry->start;
    }
    known->end = entry->end > known_end ? entry->end : known_end;
    for (size_t i = first + 1; i < end; i++) {
        known->is_sampled = known->is_sampled || space->mappings[i].is_sampled;
        free(space->mappings[i].path);
    }
    memmove(&space->mappings[first + 1], &space->mappings[end],
            (space->mapping_count - end) * sizeof *known);
    space->mapping_count -= end - first - 1;
    space->last = NULL;
    return changed;
}

/* Adds one line of maps. -ESTALE if it contradicts what is known. */
static int take_in(void *context, const struct maps_entry *entry)
{
    struct maps_reading *reading = context;
    struct space *space = reading->space;
    reading->lines++;
    if (!entry->executable)
        return 0;
    /* The mappings that it overlaps, if any. */
    size_t at = UPPER_BOUND(space->mappings, space->mapping_count, end, entry->start);
    size_t end = at;
    for (; end < space->mapping_count && space->mappings[end].start < entry->end; end++) {
        if (!is_same_code(&space->mappings[end], entry))
            return -ESTALE;
    }
    if (end > at) {
        reading->changed = extend(space, at, end, entry) || reading->changed;
        return 0;
    }
    struct module *module;
    int err = modules_get(reading->modules, reading->proc_fd, reading->tid, entry, &module);
    reading->changed = true;
    return err ? err : insert(reading, at, entry, module);
}

int space_read_maps(struct maps_reading *reading, int maps_fd)
{
    char program[PATH_MAX];
    ssize_t length = readlinkat(reading->proc_fd, "exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    reading->program = program;
    return maps_read(maps_fd, take_in, reading);
}
